/** Whose token a registry does not trust asks it as a stranger, and only then. */
import { assertEquals } from "@std/assert";
import type { Field } from "../../../../peer/proxy/http_message.ts";
import { type RefusableRead, Strangers } from "../../../../peer/proxy/strangers.ts";
import { noWait } from "../../../testutil/registry_setup.ts";

const SIGNAL = new AbortController().signal;
const OWN: Field = ["Authorization", "Bearer of-another-realm"];
const OTHERS: Field = ["authorization", "Bearer for-everyone"];
const ACCEPT: Field = ["Accept", "application/vnd.oci.image.index.v1+json"];
const READ: RefusableRead = {
  scope: "https://r.test lab/app",
  url: new URL("https://r.test/v2/lab/app/manifests/v1"),
  fields: [["Host", "127.0.0.1:65001"], ACCEPT, OWN, ["X-Lab", "1"]],
};

function setUp(answer: readonly Field[] | null) {
  const asked: { url: string; headers: readonly Field[] }[] = [];
  const clock = noWait();
  const strangers = new Strangers({
    clock,
    strangersHeaders: (read) => {
      asked.push(read);
      return Promise.resolve(answer === null ? null : [...answer]);
    },
  });
  return { asked, clock, strangers };
}

Deno.test("before a refusal the client's own fields are what is asked with", () => {
  assertEquals(setUp([OTHERS]).strangers.known(READ), READ.fields);
});

Deno.test("after a refusal another token stands in the place of the client's, for 45 s", async () => {
  const { asked, clock, strangers } = setUp([["X-Lab", "1"], OTHERS]);
  const wanted = [...READ.fields.filter((field) => field !== OWN), OTHERS];
  assertEquals(await strangers.find(READ, SIGNAL), wanted);
  assertEquals(asked, [{ url: READ.url.href, headers: [OWN, ["X-Lab", "1"], ACCEPT] }]);
  assertEquals(strangers.known({ ...READ, url: new URL("https://r.test/v2/lab/app/blobs/sha256:1") }), wanted);
  clock.aheadMs = 44_000;
  assertEquals(strangers.known(READ), wanted);
  clock.aheadMs = 46_000;
  assertEquals(strangers.known(READ), READ.fields);
});

Deno.test("it holds for one repository and for whom it was refused", async () => {
  const { strangers } = setUp([OTHERS]);
  await strangers.find(READ, SIGNAL);
  const other: RefusableRead = { ...READ, scope: "https://r.test lab/other" };
  assertEquals(strangers.known(other), other.fields);
  const better: RefusableRead = { ...READ, fields: [ACCEPT, ["Authorization", "Basic dTpw"]] };
  assertEquals(strangers.known(better), better.fields);
});

Deno.test("a registry that is open to strangers is asked without credentials", async () => {
  const { strangers } = setUp([["X-Lab", "1"]]);
  assertEquals(await strangers.find(READ, SIGNAL), READ.fields.filter((field) => field !== OWN));
});

Deno.test("what a stranger is refused stays refused, and is asked for again the next time", async () => {
  const { asked, strangers } = setUp(null);
  assertEquals([await strangers.find(READ, SIGNAL), await strangers.find(READ, SIGNAL)], [null, null]);
  assertEquals([strangers.known(READ), asked.length], [READ.fields, 2]);
});
