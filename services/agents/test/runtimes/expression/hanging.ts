/** Takes minutes: each match of the pattern takes about a second, in which no step is counted. */
export const HANGING = '$map([1..1000], function($i) { $contains($pad("", 10000, "a"), /(?:a?b?){300}(?:x|y)$/) })';
