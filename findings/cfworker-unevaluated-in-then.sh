#!/bin/sh
# Package:  @cfworker/json-schema 4.1.6 (npm)
# Expected: JSON Schema 2020-12, Core 11.3: `unevaluatedProperties` sees what is evaluated by the keywords beside it, and
#           by subschemas of these. `if` stands outside of the `then` below, so nothing has evaluated "a" there, and
#           {"a": 1} is not valid.
# Seen:     It is valid: `then` sees what `if` has evaluated. With the same condition in an `allOf` beside, it is refused.
# Fails when this has changed.
set -eu
recorded='if and then: true
allOf: false'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund @cfworker/json-schema@4.1.6
cat > try.mjs <<'END'
import { Validator } from '@cfworker/json-schema';
const hasA = { properties: { a: { const: 1 } }, required: ['a'] };
const nothingElse = { unevaluatedProperties: false };
for (const [what, schema] of [['if and then', { if: hasA, then: nothingElse }], ['allOf', { allOf: [hasA, nothingElse] }]])
  console.log(`${what}: ${new Validator(schema, '2020-12').validate({ a: 1 }).valid}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
