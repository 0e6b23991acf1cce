import { assertEquals } from "@std/assert";
import { parseChallenges } from "../../../../peer/core/challenge.ts";

const ROWS: [header: string | null, ...wanted: [scheme: string, parameters: Record<string, string>][]][] = [
  [null],
  [""],
  [" , ,"],
  ["Basic", ["basic", {}]],
  ["BASIC realm=x", ["basic", { realm: "x" }]],
  [`Basic realm="a, b"`, ["basic", { realm: "a, b" }]],
  [`Basic realm="say \\"hi\\" \\\\"`, ["basic", { realm: `say "hi" \\` }]],
  [`Basic realm=""`, ["basic", { realm: "" }]],
  [
    `Bearer realm="https://auth.example.com/token",service="registry",scope="repository:lab/app:pull,push"`,
    ["bearer", { realm: "https://auth.example.com/token", service: "registry", scope: "repository:lab/app:pull,push" }],
  ],
  [`Bearer Realm = "r" , SERVICE=s`, ["bearer", { realm: "r", service: "s" }]],
  [`Basic realm="b", Bearer realm="t",service="s"`, ["basic", { realm: "b" }], ["bearer", {
    realm: "t",
    service: "s",
  }]],
  [`Negotiate, Basic realm="b"`, ["negotiate", {}], ["basic", { realm: "b" }]],
  [`Negotiate YII+/w==, Basic realm="b"`, ["negotiate", {}], ["basic", { realm: "b" }]],
  [`Negotiate dG9rZW4, Basic realm="b"`, ["negotiate", {}], ["basic", { realm: "b" }]],
  [`Basic,Bearer realm="t"`, ["basic", {}], ["bearer", { realm: "t" }]],
  [`Bearer realm="first",realm="second"`, ["bearer", { realm: "first" }]],
  [`realm="no scheme"`],
  [`Bearer realm="never closed`, ["bearer", {}]],
  [`Bearer =x, Basic realm=b`, ["basic", { realm: "b" }]],
  [`"x" y, Basic realm=b`, ["basic", { realm: "b" }]],
  [`Bearer __proto__=x,realm=r`, ["bearer", JSON.parse(`{"__proto__":"x","realm":"r"}`)]],
];

for (const [header, ...wanted] of ROWS) {
  Deno.test(`parseChallenges() reads ${header}`, () => {
    const challenges = parseChallenges(header);
    assertEquals(challenges.map(({ scheme, parameters }) => [scheme, JSON.stringify(parameters)]), [
      ...wanted.map(([scheme, parameters]) => [scheme, JSON.stringify(parameters)]),
    ]);
  });
}

Deno.test("parseChallenges() ends on a header made of separators and quotes", () => {
  parseChallenges(`,"=`.repeat(100_000));
  parseChallenges("a ".repeat(100_000));
});
