import { assert, assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { lockWorkHome } from "../../../peer/work_home.ts";
import { Place } from "../../testutil/place.ts";
import { Child } from "../../testutil/child.ts";
import { denoFlags, mapInUse, projectRoot } from "../../../.ci/deno.ts";

Deno.test("a work home is made with all folders above it, and says who holds it", async () => {
  await using place = new Place();
  const path = place.path("a/b/home");
  using home = await lockWorkHome(path);
  assertEquals(home.path, path);
  assertEquals(await Deno.readTextFile(`${path}/daemon.lock`), `${Deno.pid}\n`);
});

Deno.test("a second daemon on a work home is refused, and told the first one's process", async () => {
  await using place = new Place();
  const path = place.path("home");
  {
    using _held = await lockWorkHome(path);
    const error = await assertRejects(() => lockWorkHome(path), LacewingError) as LacewingError;
    assertEquals(error.code, "already_running");
    assert(error.message.includes(`process ${Deno.pid}`) && error.message.includes(path), error.message);
  }
  using _again = await lockWorkHome(path);
});

Deno.test("a longer process number of an earlier holder leaves nothing behind", async () => {
  await using place = new Place();
  await Deno.mkdir(place.path("home"));
  await Deno.writeTextFile(place.path("home/daemon.lock"), "99999999999999\n");
  using _held = await lockWorkHome(place.path("home"));
  assertEquals(await Deno.readTextFile(place.path("home/daemon.lock")), `${Deno.pid}\n`);
});

Deno.test("a lock dies with its process, even one that was killed", async () => {
  await using place = new Place();
  const path = place.path("home");
  const module = `file://${projectRoot()}/peer/work_home.ts`;
  const script = `const { lockWorkHome } = await import(${JSON.stringify(module)});
    using home = await lockWorkHome(${JSON.stringify(path)});
    console.log("locked");
    await new Promise((resolve) => setTimeout(resolve, 60_000));`;
  await Deno.writeTextFile(place.path("holder.ts"), script);
  const child = new Child(["run", "-A", ...denoFlags(mapInUse()), place.path("holder.ts")]);
  try {
    await child.line((line) => line === "locked");
    const error = await assertRejects(() => lockWorkHome(path), LacewingError) as LacewingError;
    assert(error.message.includes(`process ${child.pid}`), error.message);
  } finally {
    child.kill("SIGKILL");
    await child.ended;
  }
  using _held = await lockWorkHome(path);
});

Deno.test("a work home that cannot be made says where, why, and the flag for another one", async () => {
  await using place = new Place();
  await Deno.writeTextFile(place.path("file"), "");
  for (const path of [place.path("file"), place.path("file/home")]) {
    const error = await assertRejects(() => lockWorkHome(path), LacewingError) as LacewingError;
    assertEquals(error.code, "file");
    assert(error.message.includes(path) && error.message.includes("--workhome"), error.message);
    assert(error.cause instanceof Error);
  }
  await Deno.mkdir(place.path("home/daemon.lock"), { recursive: true });
  const error = await assertRejects(() => lockWorkHome(place.path("home")), LacewingError) as LacewingError;
  assertEquals(error.code, "file");
});
