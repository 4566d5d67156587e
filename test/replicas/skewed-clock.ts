// Preloaded by a process (`NODE_OPTIONS=--import`): its clock is wrong by CLOCK_SKEW_MS, everything else of it is as it was.
const skewMs = Number(process.env.CLOCK_SKEW_MS);
const rightNow = Date.now;
Date.now = () => rightNow() + skewMs;
globalThis.Date = new Proxy(Date, {
  construct: (date, given, called) => Reflect.construct(date, given.length === 0 ? [date.now()] : given, called),
  apply: (date) => new date(date.now()).toString(),
});

export {};
