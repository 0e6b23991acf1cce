/**
 * Reads a folder as nginx tells it in XML, and the answer to a PROPFIND of
 * WebDAV (RFC 4918). Elements are known by their namespace: servers choose the
 * prefixes freely. Entities beyond those of XML itself are not expanded.
 */
import { XMLParser } from "fast-xml-parser";
import { entryOfLink, entryOfName, partition, sizeOf, timeOf } from "./links.ts";
import type { Entries, ListingEntry, ListingPage } from "./listing.ts";

const DAV = "DAV:";
/** Deeper than any answer goes: the properties of one file are six deep. */
const DEPTH_MAX = 50;

/** An element with what its prefix stands for. */
interface Element {
  readonly namespace: string;
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly Element[];
  readonly text: string;
}

/** @returns null when the text is XML of something else, or none */
export function readXmlListing(page: ListingPage): (Entries & { style: "page" | "webdav" }) | null {
  const root = readXml(page.text);
  if (root?.namespace === DAV && root.name === "multistatus") {
    return { ...readMultistatus(root, page), style: "webdav" };
  }
  if (root?.namespace === "" && root.name === "list") return { ...readNginx(root, page), style: "page" };
  return null;
}

function readNginx(root: Element, { url }: ListingPage): Entries {
  return partition(root.children.map(({ name, text, attributes }) => {
    if (name !== "file" && name !== "directory") return null;
    const facts = { size: sizeOf(attributes.get("size")), modifiedMs: timeOf(attributes.get("mtime")) };
    return entryOfName(text, url, { ...facts, isFolder: name === "directory" });
  }));
}

function readMultistatus(root: Element, page: ListingPage): Entries {
  return partition(childrenOf(root, "response").map((response) => readResponse(response, page)));
}

function readResponse(response: Element, { url, start }: ListingPage): ListingEntry | null {
  const href = childrenOf(response, "href")[0]?.text.trim() ?? "";
  // Behind a proxy some servers name themselves as they know themselves: only the path counts.
  const path = URL.parse(href, url);
  if (path === null || href === "") return null;
  const props = childrenOf(response, "propstat").filter(isGood).flatMap((stat) => childrenOf(stat, "prop"));
  const prop = (name: string) => props.flatMap((element) => childrenOf(element, name))[0];
  const type = prop("resourcetype");
  const isFolder = type === undefined ? href.endsWith("/") : childrenOf(type, "collection").length > 0;
  const size = sizeOf(prop("getcontentlength")?.text.trim());
  const modifiedMs = timeOf(prop("getlastmodified")?.text.trim());
  const entry = entryOfLink(path.pathname + path.search, { url, start }, { isFolder, size, modifiedMs });
  // The first response is the folder itself.
  return entry?.url === new URL("./", url).href ? null : entry;
}

/** Whether these properties were found: those of another status are only named. */
function isGood(propstat: Element): boolean {
  const status = childrenOf(propstat, "status")[0]?.text ?? " 200";
  return /\s2\d\d\b/.test(status);
}

function childrenOf(element: Element, name: string): readonly Element[] {
  return element.children.filter((child) => child.namespace === DAV && child.name === name);
}

type Raw = Record<string, unknown>;

function readXml(text: string): Element | null {
  const parser = new XMLParser({
    preserveOrder: true,
    ignoreAttributes: false,
    attributeNamePrefix: "",
    ignoreDeclaration: true,
    ignorePiTags: true,
    parseTagValue: false,
    parseAttributeValue: false,
    trimValues: false,
    processEntities: false,
    cdataPropName: "#cdata",
  });
  let nodes: unknown;
  try {
    nodes = parser.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(nodes)) return null;
  const root = nodes.find((node: Raw) => tagOf(node) !== null);
  return root === undefined ? null : readElement(root, { scope: new Map(), depth: 0 });
}

function readElement(
  raw: Raw,
  { scope: outer, depth }: { scope: ReadonlyMap<string, string>; depth: number },
): Element {
  const tag = tagOf(raw) ?? "";
  const content = Array.isArray(raw[tag]) ? raw[tag] as Raw[] : [];
  const attributes = new Map(
    Object.entries(raw[":@"] as Record<string, unknown> ?? {}).map(([name, value]) => [name, unescape(String(value))]),
  );
  const declared = [...attributes].flatMap(([name, value]): [string, string][] => {
    if (name === "xmlns") return [["", value]];
    return name.startsWith("xmlns:") ? [[name.slice("xmlns:".length), value]] : [];
  });
  const scope = declared.length === 0 ? outer : new Map([...outer, ...declared]);
  const colon = tag.indexOf(":");
  const children = depth >= DEPTH_MAX ? [] : content.filter((node) => tagOf(node) !== null);
  return {
    namespace: scope.get(colon === -1 ? "" : tag.slice(0, colon)) ?? "",
    name: tag.slice(colon + 1),
    attributes,
    children: children.map((node) => readElement(node, { scope, depth: depth + 1 })),
    text: content.map(textOf).join(""),
  };
}

/** The name of an element; null for text. */
function tagOf(node: Raw): string | null {
  return Object.keys(node).find((key) => key !== ":@" && !key.startsWith("#")) ?? null;
}

function textOf(node: Raw): string {
  if (typeof node["#text"] === "string") return unescape(node["#text"]);
  const cdata = node["#cdata"];
  return Array.isArray(cdata) ? cdata.map((part: Raw) => String(part["#text"] ?? "")).join("") : "";
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The five entities of XML and character references; anything else stays as it is. */
function unescape(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal === undefined ? parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
