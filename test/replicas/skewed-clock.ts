// Preloaded by a process (`NODE_OPTIONS=--import=<this file>?ms=<n>`): shifts its clock by n milliseconds.
const skewMs = Number(new URL(import.meta.url).searchParams.get('ms'));
const rightNow = Date.now;
Date.now = () => rightNow() + skewMs;
globalThis.Date = new Proxy(Date, {
  construct: (date, given, called) => Reflect.construct(date, given.length === 0 ? [date.now()] : given, called),
  apply: (date) => new date(date.now()).toString(),
});

export {};
