/**
 * Stands in for `@std/assert` where JSR is out of reach, on `node:assert` and
 * `node:util`: the same checks throw the same error class with the value shown and, between
 * two unequal values, a diff. The wording of messages may differ.
 */
import { deepStrictEqual } from "node:assert";
import { inspect, isDeepStrictEqual } from "node:util";

// deno-lint-ignore no-explicit-any
type ErrorClass<E> = abstract new (...args: any[]) => E;

/** The error of every failed assertion. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export function fail(message?: string): never {
  throw new AssertionError(`Failed assertion${suffix(message)}`);
}

export function assert(condition: unknown, message = ""): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Deep and strict, but -0 equals 0 and a null prototype equals a plain object's. */
export function assertEquals<T>(actual: T, expected: T, message?: string): void {
  if (equal(actual, expected)) return;
  throw new AssertionError(`Values are not equal${suffix(message)}\n${diff(actual, expected)}`);
}

export function assertNotEquals<T>(actual: T, expected: T, message?: string): void {
  if (!equal(actual, expected)) return;
  throw new AssertionError(`Expected actual: ${show(actual)} not to be: ${show(expected)}${suffix(message)}`);
}

export function assertStrictEquals<T>(actual: unknown, expected: T, message?: string): asserts actual is T {
  if (Object.is(actual, expected)) return;
  throw new AssertionError(`Values are not strictly equal${suffix(message)}\n${diff(actual, expected)}`);
}

export function assertExists<T>(actual: T, message?: string): asserts actual is NonNullable<T> {
  if (actual !== undefined && actual !== null) return;
  throw new AssertionError(`Expected actual: "${actual}" to not be null or undefined${suffix(message)}`);
}

export function assertInstanceOf<T>(
  actual: unknown,
  type: ErrorClass<T>,
  message?: string,
): asserts actual is T {
  if (actual instanceof type) return;
  throw new AssertionError(`Expected ${show(actual)} to be an instance of "${type.name}"${suffix(message)}`);
}

export function assertMatch(actual: string, expected: RegExp, message?: string): void {
  if (expected.test(actual)) return;
  throw new AssertionError(`Expected actual: "${actual}" to match: "${expected}"${suffix(message)}`);
}

export function assertStringIncludes(actual: string, expected: string, message?: string): void {
  if (actual.includes(expected)) return;
  throw new AssertionError(`Expected actual: "${actual}" to contain: "${expected}"${suffix(message)}`);
}

export function assertArrayIncludes<T>(
  actual: ArrayLike<T> & object,
  expected: ArrayLike<T> & object,
  message?: string,
): void {
  const items = Array.from(actual);
  const missing = Array.from(expected).filter((wanted) => !items.some((item) => equal(item, wanted)));
  if (missing.length === 0) return;
  throw new AssertionError(
    `Expected actual: ${show(actual)} to include: ${show(expected)}${suffix(message)}\nmissing: ${show(missing)}`,
  );
}

/** Whether `actual` holds every key of `expected`, deeply, with equal values; it may hold more. */
export function assertObjectMatch(
  // deno-lint-ignore no-explicit-any
  actual: Record<PropertyKey, any>,
  expected: Record<PropertyKey, unknown>,
  message?: string,
): void {
  assertEquals(narrow(actual, expected), narrow(expected, expected), message);
}

export function assertGreater<T>(actual: T, expected: T, message?: string): void {
  if (!(actual > expected)) throw new AssertionError(message ?? `Expect ${show(actual)} > ${show(expected)}`);
}

export function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void {
  if (!(actual >= expected)) throw new AssertionError(message ?? `Expect ${show(actual)} >= ${show(expected)}`);
}

export function assertLess<T>(actual: T, expected: T, message?: string): void {
  if (!(actual < expected)) throw new AssertionError(message ?? `Expect ${show(actual)} < ${show(expected)}`);
}

export function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void {
  if (!(actual <= expected)) throw new AssertionError(message ?? `Expect ${show(actual)} <= ${show(expected)}`);
}

/** @param tolerance largest difference; one ten-millionth of `expected` when absent */
export function assertAlmostEquals(actual: number, expected: number, tolerance?: number, message?: string): void {
  if (Object.is(actual, expected)) return;
  const allowed = tolerance ?? (Number.isFinite(expected) ? Math.abs(expected * 1e-7) : 1e-7);
  const delta = Math.abs(expected - actual);
  if (delta <= allowed) return;
  throw new AssertionError(
    `Expected actual: "${actual}" to be close to "${expected}": delta "${delta}" is greater than "${allowed}"${
      suffix(message)
    }`,
  );
}

export function assertThrows(fn: () => unknown, message?: string): unknown;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  type: ErrorClass<E>,
  includes?: string,
  message?: string,
): E;
/** @returns what the function threw */
export function assertThrows<E extends Error>(
  fn: () => unknown,
  ...wanted: [string?] | [ErrorClass<E>, string?, string?]
): unknown {
  const expectation = expectationOf(wanted);
  try {
    fn();
  } catch (error) {
    return checkError(error, expectation);
  }
  throw new AssertionError(`Expected function to throw${suffix(expectation.message)}`);
}

export function assertRejects(fn: () => PromiseLike<unknown>, message?: string): Promise<unknown>;
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  type: ErrorClass<E>,
  includes?: string,
  message?: string,
): Promise<E>;
/** @returns what the promise was rejected with; a function that throws at once fails the assertion */
export async function assertRejects<E extends Error>(
  fn: () => PromiseLike<unknown>,
  ...wanted: [string?] | [ErrorClass<E>, string?, string?]
): Promise<unknown> {
  const expectation = expectationOf(wanted);
  let promise: PromiseLike<unknown> | undefined;
  try {
    promise = fn();
  } catch {
    // Falls through: what is not a promise cannot be rejected.
  }
  if (typeof promise?.then !== "function") {
    throw new AssertionError(`Function throws when expected to reject${suffix(expectation.message)}`);
  }
  try {
    await promise;
  } catch (error) {
    return checkError(error, expectation);
  }
  throw new AssertionError(`Expected function to reject${suffix(expectation.message)}`);
}

interface Expectation {
  type?: ErrorClass<Error> | undefined;
  includes?: string | undefined;
  message?: string | undefined;
}

function expectationOf(wanted: [string?] | [ErrorClass<Error>, string?, string?]): Expectation {
  const [first, includes, message] = wanted;
  return typeof first === "string" ? { message: first } : { type: first, includes, message };
}

function checkError(error: unknown, { type, includes, message }: Expectation): unknown {
  if (type && !(error instanceof type)) {
    throw new AssertionError(`Expected error of class "${type.name}" but got ${show(error)}${suffix(message)}`);
  }
  if (includes !== undefined && !(error instanceof Error && error.message.includes(includes))) {
    throw new AssertionError(`Expected error message to include "${includes}", got ${show(error)}${suffix(message)}`);
  }
  return error;
}

function equal(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a, b) || isDeepStrictEqual(plain(a), plain(b));
}

/** A copy of arrays and records in which -0 is 0 and null prototypes are plain: `@std/assert` takes these as equal. */
function plain(value: unknown, seen = new Map<object, unknown>()): unknown {
  if (value === 0) return 0;
  if (!isRecord(value) && !Array.isArray(value)) return value;
  const known = seen.get(value);
  if (known !== undefined) return known;
  const copy: Record<PropertyKey, unknown> | unknown[] = Array.isArray(value) ? new Array(value.length) : {};
  seen.set(value, copy);
  for (const key of Reflect.ownKeys(value)) {
    if (key === "length" && Array.isArray(value)) continue;
    const copied = plain((value as Record<PropertyKey, unknown>)[key], seen);
    Object.defineProperty(copy, key, { value: copied, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

function isRecord(value: unknown): value is Record<PropertyKey, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** `value` with only those keys that `shape` has too, at every level; instances of classes become records. */
function narrow(value: unknown, shape: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(shape)) {
    return value.slice(0, shape.length).map((item, i) => narrow(item, shape[i]));
  }
  if (!isOpen(value) || !isOpen(shape)) return value;
  const keys = Reflect.ownKeys(shape).filter((key) => key in value);
  return Object.fromEntries(keys.map((key) => [key, narrow(value[key], shape[key])]));
}

/** Whether a value is compared by its keys, and not by what it stands for, as dates, sets and bytes are. */
function isOpen(value: unknown): value is Record<PropertyKey, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.prototype.toString.call(value) === "[object Object]" || value instanceof Error;
}

function diff(actual: unknown, expected: unknown): string {
  try {
    deepStrictEqual(actual, expected);
  } catch (error) {
    return (error as Error).message;
  }
  return `Both show as ${show(actual)}`;
}

function show(value: unknown): string {
  return inspect(value, { depth: 8, maxArrayLength: 100, sorted: true });
}

function suffix(message: string | undefined): string {
  return message ? `: ${message}` : ".";
}
