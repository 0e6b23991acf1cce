/**
 * Decides what kind of network an IP address belongs to, and whether an origin
 * at that address may be asked. Pure: names are resolved by the caller, and
 * every address that a connection may use is judged, not the name.
 *
 * IPv4 inside IPv6 (mapped, compatible, NAT64, 6to4) is judged as the IPv4 it
 * leads to: otherwise `::ffff:169.254.169.254` would walk past every rule.
 */

/** An address as its 16-bit groups: 2 for IPv4, 8 for IPv6. */
type Groups = readonly number[];

interface Network {
  readonly groups: Groups;
  readonly bits: number;
}

const LOOPBACK = ["127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128"].map(network);
const LINK_LOCAL = ["169.254.0.0/16", "fe80::/10"].map(network);
/** RFC 1918, RFC 6598 (shared by carriers), RFC 4193, and what is no unicast address of the internet (RFC 6890). */
const PRIVATE = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "192.0.0.0/24",
  "198.18.0.0/15",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "fc00::/7",
  "fec0::/10",
  "ff00::/8",
].map(network);
/** Clouds' instance metadata outside of the link-local range: AWS over IPv6, Alibaba, Azure. */
const METADATA = ["fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32"].map(network);

/** Whether the address leads back to this machine (`0.0.0.0` and `::` do when connected to). */
export function isLoopback(address: string): boolean {
  return isIn(address, LOOPBACK);
}

/** Whether the address is link-local (`169.254.0.0/16`, `fe80::/10`), where clouds keep their metadata services. */
export function isLinkLocal(address: string): boolean {
  return isIn(address, LINK_LOCAL);
}

/** Whether the address is of a private or reserved network; loopback and link-local have functions of their own. */
export function isPrivate(address: string): boolean {
  return isIn(address, PRIVATE);
}

/**
 * Why an origin at this address may not be asked, or null when it may.
 * Link-local and metadata addresses are refused always.
 */
export function addressRefusal(
  address: string,
  { allowPrivateNetworks }: { allowPrivateNetworks: boolean },
): string | null {
  if (parseAddress(address) === null) return "is no IP address";
  if (isLinkLocal(address)) return "is link-local, which is always refused";
  if (isIn(address, METADATA)) return "is a cloud metadata service, which is always refused";
  if (allowPrivateNetworks) return null;
  if (isLoopback(address)) return "is a loopback address and private networks are not allowed";
  return isPrivate(address) ? "is a private address and private networks are not allowed" : null;
}

/** Whether the address is of a network such as `10.0.0.0/8`; a network that cannot be read holds nothing. */
export function isInNetwork(address: string, cidr: string): boolean {
  try {
    return isIn(address, [network(cidr)]);
  } catch {
    return false;
  }
}

function isIn(address: string, networks: readonly Network[]): boolean {
  const groups = parseAddress(address);
  return groups !== null && networks.some((candidate) => contains(candidate, groups));
}

function contains({ groups, bits }: Network, address: Groups): boolean {
  if (groups.length !== address.length) return false;
  for (let at = 0; at * 16 < bits; at++) {
    const left = bits - at * 16;
    const mask = left >= 16 ? 0xffff : (0xffff << (16 - left)) & 0xffff;
    if (((groups[at] ?? 0) & mask) !== ((address[at] ?? 0) & mask)) return false;
  }
  return true;
}

function network(text: string): Network {
  const [address = "", bits = "", ...rest] = text.split("/");
  const groups = address.includes(":") ? parseIpv6(address) : parseIpv4(address);
  const isWhole = groups !== null && /^\d{1,3}$/.test(bits) && Number(bits) <= groups.length * 16 && rest.length === 0;
  if (!isWhole) throw new RangeError(`Cannot read network ${text}`);
  return { groups, bits: Number(bits) };
}

function parseAddress(text: string): Groups | null {
  const bare = text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
  if (!bare.includes(":")) return parseIpv4(bare);
  const groups = parseIpv6(bare);
  return groups === null ? null : embeddedIpv4(groups) ?? groups;
}

function parseIpv4(text: string): Groups | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  const bytes = match?.slice(1).map(Number) ?? [];
  const [a, b, c, d] = bytes;
  if (a === undefined || b === undefined || c === undefined || d === undefined) return null;
  return bytes.some((byte) => byte > 255) ? null : [(a << 8) | b, (c << 8) | d];
}

function parseIpv6(text: string): Groups | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map(parseGroups);
  if (head === null || head === undefined || tail === null) return null;
  if (tail === undefined) return head.length === 8 ? head : null;
  const missing = 8 - head.length - tail.length;
  return missing < 1 ? null : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function parseGroups(text: string): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    const ipv4 = index === parts.length - 1 ? parseIpv4(part) : null;
    if (ipv4 !== null) groups.push(...ipv4);
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(parseInt(part, 16));
    else return null;
  }
  return groups;
}

function embeddedIpv4(groups: Groups): Groups | null {
  const [first, second] = groups;
  if (first === 0x2002) return groups.slice(1, 3);
  const last = groups.slice(6);
  if (first === 0x64 && second === 0xff9b && groups.slice(2, 6).every((group) => group === 0)) return last;
  if (!groups.slice(0, 5).every((group) => group === 0)) return null;
  const isMapped = groups[5] === 0xffff;
  // `::` and `::1` look like IPv4-compatible addresses and are none.
  const isCompatible = groups[5] === 0 && groups[6] !== 0;
  return isMapped || isCompatible ? last : null;
}
