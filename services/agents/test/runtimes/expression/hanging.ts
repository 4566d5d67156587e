/**
 * Matches of a large pattern, of which each takes about a second without a step, and all take many minutes. At its
 * limit of time a run ends by itself after a match, or is killed during one.
 */
export const HANGING = '$map([1..1000], function($i) { $contains($pad("", 10000, "a"), /(?:a?b?){300}(?:x|y)$/) })';
