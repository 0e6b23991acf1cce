/**
 * What several resources share in their requests and answers: ids, pages,
 * problems. The OpenAPI document is made of these very schemas.
 */
import { z } from "@hono/zod-openapi";
import type { Context } from "hono";

const PER_PAGE_MAX = 100;

export const idParam = z.object({
  id: z.string().regex(/^[1-9]\d{0,14}$/, "want a positive integer").transform(Number).openapi({
    type: "integer",
    minimum: 1,
  }),
});

const wholeNumber = (fallback: number, max: number) =>
  z.string().regex(/^\d{1,9}$/, `want a whole number from 1 to ${max}`).transform(Number).refine(
    (value) => value >= 1 && value <= max,
    `want a whole number from 1 to ${max}`,
  ).optional().transform((value) => value ?? fallback).openapi({
    type: "integer",
    minimum: 1,
    maximum: max,
    default: fallback,
  });

export const pageQuery = z.object({ page: wholeNumber(1, 1_000_000), per_page: wholeNumber(10, PER_PAGE_MAX) });

/** An optional choice in the query; an empty one counts as absent. */
export function choice<const Values extends readonly [string, ...string[]]>(values: Values) {
  return z.union([z.enum(values), z.literal("")], `want one of ${values.join(", ")}`).optional()
    .transform((value) => value === "" || value === undefined ? undefined : value as Values[number])
    .openapi({ type: "string", enum: [...values] });
}

const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string(),
  code: z.string().openapi({ description: "Stable; codes are added, never renamed." }),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  message: z.string().openapi({ description: "The same as `detail`." }),
}).openapi("Problem");

const PROBLEMS: Record<number, string> = {
  400: "The body is not JSON",
  401: "No token, or a wrong one",
  403: "The token does not allow this, or a foreign page sent it",
  404: "There is none with this id",
  409: "Not possible in the present state",
  413: "The body is over 1 MiB",
  415: "The body is not JSON by its Content-Type",
  422: "A value is not valid; `errors` names each",
  429: "Too many; `Retry-After` says when to try again",
  500: "The manager failed unexpectedly",
  503: "Not possible right now; the detail says why",
};

/** The problem answers of a route: these, and those that every route can give. */
export function problems(...statuses: number[]) {
  const all = [...new Set([...statuses, 401, 403, 429, 500, 503])].sort();
  return Object.fromEntries(all.map((status) => [status, {
    description: PROBLEMS[status] ?? "Problem",
    content: { "application/problem+json": { schema: problemSchema } },
  }]));
}

/** A JSON answer. */
export function json<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/** A JSON answer that is one page of a list. */
export function jsonPage<Schema extends z.ZodType>(schema: Schema, description: string) {
  return {
    ...json(z.array(schema), description),
    headers: z.object({
      Link: z.string().openapi({ description: "RFC 8288: first, prev, next, last." }),
      "X-Total-Count": z.string().openapi({ description: "Entries on all pages." }),
    }),
  };
}

/** A JSON body that must be there. */
export function body<Schema extends z.ZodType>(schema: Schema) {
  return { required: true, content: { "application/json": { schema } } };
}

export interface PageQuery {
  readonly page: number;
  readonly per_page: number;
}

/** Which rows a page is. */
export function pageOf({ page, per_page }: PageQuery): { limit: number; offset: number } {
  return { limit: per_page, offset: (page - 1) * per_page };
}

/** Sets `Link` and `X-Total-Count` for a list. */
export function setPageHeaders(c: Context, { page, per_page }: PageQuery, total: number): void {
  const last = Math.max(1, Math.ceil(total / per_page));
  const url = new URL(c.req.url);
  const link = (number: number, rel: string) => {
    url.searchParams.set("page", String(number));
    url.searchParams.set("per_page", String(per_page));
    return `<${url.pathname}${url.search}>; rel="${rel}"`;
  };
  c.header(
    "Link",
    [
      ...(page > 1 ? [link(Math.min(page - 1, last), "prev")] : []),
      ...(page < last ? [link(page + 1, "next")] : []),
      link(1, "first"),
      link(last, "last"),
    ].join(", "),
  );
  c.header("X-Total-Count", String(total));
}
