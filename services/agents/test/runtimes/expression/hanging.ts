/** One search of a long text, which takes V8 minutes: it counts no step and cannot be interrupted. */
export const HANGING =
  '$contains($reduce([1..6], function($s, $i) { $s & $s }, $pad("", 100000, "a")), ' +
  '$pad("", 50000, "a") & "b" & $pad("", 50000, "a"))';
