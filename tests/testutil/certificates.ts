/** A certificate authority and a server certificate for loopback, made by openssl in a folder of the test's. */
import { runBytes } from "./child.ts";

export interface Certificates {
  /** PEM texts. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly caPath: string;
  readonly certPath: string;
  readonly keyPath: string;
}

/** Makes them; `names` are subject alternative names such as `DNS:localhost`. */
export async function makeCertificates(
  folder: string,
  names: readonly string[] = ["DNS:localhost", "IP:127.0.0.1"],
): Promise<Certificates> {
  const [caPath, caKey, certPath, keyPath] = ["ca.crt", "ca.key", "server.crt", "server.key"].map((name) =>
    `${folder}/${name}`
  ) as [string, string, string, string];
  await Deno.mkdir(folder, { recursive: true });
  const rsa = ["-newkey", "rsa:2048", "-nodes", "-days", "2"];
  await openssl("req", "-x509", ...rsa, "-subj", "/CN=test authority", "-keyout", caKey, "-out", caPath);
  await Deno.writeTextFile(`${folder}/names`, `subjectAltName=${names.join(",")}\n`);
  const request = `${folder}/server.csr`;
  await openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-keyout", keyPath, "-out", request);
  const signed = ["-CA", caPath, "-CAkey", caKey, "-CAcreateserial", "-days", "2", "-extfile", `${folder}/names`];
  await openssl("x509", "-req", "-in", request, ...signed, "-out", certPath);
  const [ca, cert, key] = [caPath, certPath, keyPath].map((path) => Deno.readTextFileSync(path));
  return { ca: ca ?? "", cert: cert ?? "", key: key ?? "", caPath, certPath, keyPath };
}

async function openssl(...args: string[]): Promise<void> {
  const { code, stderr } = await runBytes("openssl", { args });
  if (code !== 0) throw new Error(`openssl ${args[0]} failed: ${stderr}`);
}
