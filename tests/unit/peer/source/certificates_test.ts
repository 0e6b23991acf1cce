import { assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { readCertificates } from "../../../../peer/source/certificates.ts";
import { makeCertificates } from "../../../testutil/certificates.ts";
import { hasTools } from "../../../testutil/registry.ts";

const KEY = "download.source.caCerts";

Deno.test({
  name: "readCertificates() reads each file, in order",
  ignore: !hasTools(["openssl"]),
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      const { ca } = await makeCertificates(`${folder}/certs`);
      await Deno.writeTextFile(`${folder}/a.pem`, ca);
      await Deno.writeTextFile(`${folder}/b.pem`, `# ours\n${ca}`);
      assertEquals(await readCertificates([`${folder}/b.pem`, `${folder}/a.pem`], KEY), [`# ours\n${ca}`, ca]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

for (
  const [path, wanted] of [["/no/ca.pem", "cannot read /no/ca.pem"], ["/dev/null", "/dev/null holds no certificate"]]
) {
  Deno.test(`readCertificates() names key and file: ${wanted}`, async () => {
    const error = await assertRejects(() => readCertificates([path!], KEY), LacewingError) as LacewingError;
    assertEquals([error.code, error.message.startsWith(`Cannot use ${KEY}: ${wanted}`)], ["config_invalid", true]);
  });
}
