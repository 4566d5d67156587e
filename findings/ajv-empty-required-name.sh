#!/bin/sh
# Package:  ajv 8.20.0 (npm)
# Expected: JSON Schema 2020-12, Validation 6.5.3: an object is valid against `required` if it has a member for every name
#           in the list. "" is such a name, so {} is not valid against {"required": [""]}, nor {"a": 1} against
#           {"dependentRequired": {"a": [""]}}.
# Seen:     Both are valid, unless all errors are asked for. The generated code assigns the missing name to a variable
#           within the condition that asks whether one is missing, and "" counts as false there.
# Fails when this has changed.
set -eu
recorded='required, first error: true
required, all errors: false
dependentRequired, first error: true
dependentRequired, all errors: false'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund ajv@8.20.0
cat > try.mjs <<'END'
import { Ajv2020 } from 'ajv/dist/2020.js';
const cases = [
  ['required', { type: 'object', required: [''] }, {}],
  ['dependentRequired', { type: 'object', dependentRequired: { a: [''] } }, { a: 1 }],
];
for (const [keyword, schema, value] of cases)
  for (const [what, allErrors] of [['first error', false], ['all errors', true]])
    console.log(`${keyword}, ${what}: ${new Ajv2020({ allErrors }).validate(schema, value)}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
