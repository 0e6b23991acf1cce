/** A file of authorities that would trust nobody is told of where it is named. */
import { assertEquals, assertThrows } from "@std/assert";
import { checkedCertificates } from "../../../../peer/core/certificates.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { makeCertificates } from "../../../testutil/certificates.ts";
import { hasTools } from "../../../testutil/registry.ts";

const NAMES = { key: "download.source.caCerts", path: "/ca.pem" };
const NONSENSE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

Deno.test({
  name: "certificates come back as they stand, with whatever is between them",
  ignore: !hasTools(["openssl"]),
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      const { ca } = await makeCertificates(`${folder}/certs`);
      const text = `# ours\r\n${ca}\n\n# again\n${ca}`;
      assertEquals(checkedCertificates(text, NAMES), text);
      const error = assertThrows(() => checkedCertificates(`${ca}${NONSENSE}`, NAMES), LacewingError, "certificate 2");
      assertEquals(error.code, "config_invalid");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

for (const text of ["", "proxy: {}\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", NONSENSE]) {
  Deno.test(`${JSON.stringify(text)} is refused with its file and what names it`, () => {
    const error = assertThrows(() => checkedCertificates(text, NAMES), LacewingError, NAMES.key);
    assertEquals([error.code, error.message.includes(NAMES.path)], ["config_invalid", true]);
  });
}
