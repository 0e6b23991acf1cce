/**
 * Turns the proxy's section of the configuration into what the proxy is
 * started with: compiles expressions, reads certificates, and makes the source
 * from which the engine reads origins that are not verified.
 */
import type { DaemonConfig } from "../config.ts";
import { readCertificates } from "../source/certificates.ts";
import type { Source } from "../source/source.ts";
import type { ProxyConfig } from "./proxy.ts";

type Section = NonNullable<DaemonConfig["proxy"]>;

/** @param caCerts of all origins, those of `registryMirror.certs` among them */
export function proxySettings(
  section: Section,
  { caCerts, insecure, allowPrivateNetworks, idleTimeoutMs }: {
    caCerts: readonly string[];
    insecure: boolean;
    allowPrivateNetworks: boolean;
    idleTimeoutMs?: number;
  },
): ProxyConfig {
  const { registryMirror: mirror } = section;
  return {
    listenIP: section.listenIP,
    port: section.tcpListen.port,
    url: mirror.url,
    dynamic: mirror.dynamic,
    registries: mirror.registries,
    authorize: mirror.authorize,
    defaultFilter: section.defaultFilter,
    defaultTag: section.defaultTag,
    rules: section.proxies.map((rule) => ({ ...rule, regx: new RegExp(rule.regx) })),
    whiteList: section.whiteList.map(({ host, regx, ports }) => ({
      host,
      regx: regx === "" ? null : new RegExp(regx),
      ports,
    })),
    basicAuth: section.basicAuth,
    caCerts,
    isInsecure: (url) => insecure || isUnverified(url, section),
    allowPrivateNetworks,
    // Manifests that a registry makes for the asker take longer than bytes, and nobody reads them in its place.
    ...(idleTimeoutMs === undefined ? {} : { timeoutMs: 2 * idleTimeoutMs }),
  };
}

/** PEM texts of `registryMirror.certs`. @throws {LacewingError} `config_invalid` for one that cannot be read or is none */
export async function mirrorCertificates({ registryMirror: { certs } }: Section): Promise<string[]> {
  return await readCertificates(certs, "proxy.registryMirror.certs");
}

/** Reads configured registries without verifying their certificates, and everything else as before. */
export function withUnverified(verified: Source, unverified: Source, section: Section): Source {
  return {
    open: (request, options) => {
      const url = URL.parse(request.url);
      return (url !== null && isUnverified(url, section) ? unverified : verified).open(request, options);
    },
  };
}

function isUnverified(url: URL, { registryMirror: { insecure, url: own, registries } }: Section): boolean {
  return insecure &&
    [own, ...registries.map((registry) => registry.url)].some((text) => new URL(text).host === url.host);
}
