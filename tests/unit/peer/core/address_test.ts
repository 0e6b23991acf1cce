import { assertEquals } from "@std/assert";
import { addressRefusal, isInNetwork, isLinkLocal, isLoopback, isPrivate } from "../../../../peer/core/address.ts";

type Kind = "loopback" | "link-local" | "private" | "public";

const ROWS: [address: string, kind: Kind][] = [
  ["127.0.0.1", "loopback"],
  ["127.255.255.254", "loopback"],
  ["0.0.0.0", "loopback"],
  ["::1", "loopback"],
  ["[::1]", "loopback"],
  ["::", "loopback"],
  ["0:0:0:0:0:0:0:1", "loopback"],
  ["::ffff:127.0.0.1", "loopback"],
  ["::ffff:7f00:1", "loopback"],
  ["::127.0.0.1", "loopback"],
  ["169.254.169.254", "link-local"],
  ["169.254.0.0", "link-local"],
  ["fe80::1", "link-local"],
  ["fe80::1%eth0", "link-local"],
  ["febf::1", "link-local"],
  ["::ffff:169.254.169.254", "link-local"],
  ["64:ff9b::169.254.169.254", "link-local"],
  ["2002:a9fe:a9fe::1", "link-local"],
  ["10.0.0.1", "private"],
  ["172.16.0.1", "private"],
  ["172.31.255.255", "private"],
  ["192.168.1.1", "private"],
  ["100.64.0.1", "private"],
  ["100.127.255.255", "private"],
  ["224.0.0.1", "private"],
  ["255.255.255.255", "private"],
  ["fc00::1", "private"],
  ["fdff::1", "private"],
  ["ff02::1", "private"],
  ["::ffff:10.1.2.3", "private"],
  ["8.8.8.8", "public"],
  ["172.15.0.1", "public"],
  ["172.32.0.1", "public"],
  ["100.63.255.255", "public"],
  ["100.128.0.1", "public"],
  ["169.253.0.1", "public"],
  ["192.167.0.1", "public"],
  ["2001:db8::1", "public"],
  ["2600::1", "public"],
  ["::ffff:8.8.8.8", "public"],
];

for (const [address, kind] of ROWS) {
  Deno.test(`address ${address} is ${kind}`, () => {
    const seen = isLoopback(address)
      ? "loopback"
      : isLinkLocal(address)
      ? "link-local"
      : isPrivate(address)
      ? "private"
      : "public";
    assertEquals(seen, kind);
  });
}

for (
  const text of [
    "",
    "localhost",
    "1.2.3",
    "256.1.1.1",
    "1.2.3.4.5",
    ":::",
    "1::2::3",
    "12345::",
    "g::1",
    "1:2:3:4:5:6:7",
  ]
) {
  Deno.test(`addressRefusal() refuses ${JSON.stringify(text)}, which is no address`, () => {
    assertEquals(addressRefusal(text, { allowPrivateNetworks: true }), "is no IP address");
    assertEquals([isLoopback(text), isLinkLocal(text), isPrivate(text)], [false, false, false]);
  });
}

for (const address of ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"]) {
  Deno.test(`addressRefusal() refuses ${address} even where private networks are allowed`, () => {
    assertEquals(typeof addressRefusal(address, { allowPrivateNetworks: true }), "string");
  });
}

for (const address of ["127.0.0.1", "::1", "10.0.0.1", "192.168.0.9", "fd12::1"]) {
  Deno.test(`addressRefusal() lets ${address} pass only where private networks are allowed`, () => {
    assertEquals(addressRefusal(address, { allowPrivateNetworks: true }), null);
    assertEquals(typeof addressRefusal(address, { allowPrivateNetworks: false }), "string");
  });
}

for (const address of ["8.8.8.8", "2600::1"]) {
  Deno.test(`addressRefusal() lets ${address} pass`, () => {
    assertEquals(addressRefusal(address, { allowPrivateNetworks: false }), null);
  });
}

for (
  const [address, cidr, isIn] of [
    ["10.1.2.3", "10.0.0.0/8", true],
    ["::ffff:10.1.2.3", "10.0.0.0/8", true],
    ["11.0.0.1", "10.0.0.0/8", false],
    ["192.168.1.129", "192.168.1.128/25", true],
    ["192.168.1.127", "192.168.1.128/25", false],
    ["1.2.3.4", "1.2.3.4/32", true],
    ["8.8.8.8", "0.0.0.0/0", true],
    ["2001:db8::5", "2001:db8::/32", true],
    ["2001:db9::5", "2001:db8::/32", false],
    ["10.0.0.1", "::/0", false],
    ["10.0.0.1", "10.0.0.0", false],
    ["10.0.0.1", "10.0.0.0/33", false],
    ["10.0.0.1", "10.0.0.0/8/8", false],
    ["10.0.0.1", "10.0.0.0/", false],
    ["10.0.0.1", "host/8", false],
    ["host", "10.0.0.0/8", false],
  ] as const
) {
  Deno.test(`isInNetwork(${address}, ${cidr}) is ${isIn}`, () => assertEquals(isInNetwork(address, cidr), isIn));
}
