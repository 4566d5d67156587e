// Preloaded by a process (`NODE_OPTIONS=--import`): shifts its clock by CLOCK_SKEW_MS milliseconds.
const skewMs = Number(process.env.CLOCK_SKEW_MS);
const rightNow = Date.now;
Date.now = () => rightNow() + skewMs;
globalThis.Date = new Proxy(Date, {
  construct: (date, given, called) => Reflect.construct(date, given.length === 0 ? [date.now()] : given, called),
  apply: (date) => new date(date.now()).toString(),
});

export {};
