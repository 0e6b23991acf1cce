/** Names and places of outputs: what `-O` means, and that no URL leaves its folder. */
import { assert, assertEquals } from "@std/assert";
import { nameFromUrl, outputPath, splitPath, temporaryName } from "../../../cli/output_path.ts";

const PLACE = { url: "http://o.test/d/file.bin?x=1#y", cwd: "/work", isFolder: (path: string) => path === "/folder" };

const PATHS: [string | null, string][] = [
  [null, "/work/file.bin"],
  ["out", "/work/out"],
  ["./out", "/work/out"],
  ["a/out", "/work/a/out"],
  ["../out", "/work/../out"],
  ["/abs/out", "/abs/out"],
  ["/folder", "/folder/file.bin"],
  ["/folder/", "/folder/file.bin"],
  ["/new/", "/new/file.bin"],
  ["new/", "/work/new/file.bin"],
  [".", "/work/file.bin"],
  ["./", "/work/file.bin"],
  ["..", "/work/../file.bin"],
  ["/", "/file.bin"],
  ["name with spaces", "/work/name with spaces"],
  ["-", "/work/-"],
];
for (const [output, path] of PATHS) {
  Deno.test(`outputPath() of ${output === null ? "nothing" : JSON.stringify(output)} is ${path}`, () => {
    assertEquals(outputPath(output, PLACE), path);
  });
}

const NAMES: [string, string][] = [
  ["http://o/a/b.tar.gz", "b.tar.gz"],
  ["http://o/a%20b", "a b"],
  ["http://o/%E4%B8%AD%E6%96%87", "\u4e2d\u6587"],
  ["http://o/100%", "100%"],
  ["http://o/%ff%fe", "%ff%fe"],
  ["http://o", "index.html"],
  ["http://o/", "index.html"],
  ["http://o/a/", "index.html"],
  ["http://o/a/..", "index.html"],
  ["http://o/a/%2e%2e", "index.html"],
  ["http://o/a/..%2f..%2fetc%2fpasswd", ".._.._etc_passwd"],
  ["http://o/%2fetc%2fpasswd", "_etc_passwd"],
  ["http://o/a%5c..%5cb", "a_.._b"],
  ["http://o/a%00b", "a_b"],
  ["http://o/a%0Ab%1b[31m", "a_b_[31m"],
  ["http://o/%C2%9Bx", "_x"],
  ["http://o/%E2%80%AEgnp.exe", "_gnp.exe"],
  ["http://o/.hidden", ".hidden"],
  ["http://o/...", "..."],
  ["http://o/-rf", "-rf"],
  ["http://o/x?name=../../y", "x"],
  ["not a URL", "index.html"],
];
for (const [url, name] of NAMES) {
  Deno.test(`nameFromUrl() of ${url} is ${JSON.stringify(name)}`, () => assertEquals(nameFromUrl(url), name));
}

Deno.test("names fit the file system, cut between characters", () => {
  const long = nameFromUrl(`http://o/${"\u4e2d".repeat(200)}`);
  assert(new TextEncoder().encode(long).length <= 255);
  assertEquals(long, "\u4e2d".repeat(85));
  const temporary = temporaryName(long, "0123456789ab");
  assert(new TextEncoder().encode(temporary).length <= 255);
  assertEquals(temporaryName("out", "ab12"), ".out.lacewing-ab12");
});

Deno.test("splitPath() parts folder and name", () => {
  assertEquals(splitPath("/a/b"), { folder: "/a", base: "b" });
  assertEquals(splitPath("/b"), { folder: "/", base: "b" });
});
