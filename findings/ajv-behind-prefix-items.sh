#!/bin/sh
# Package:  ajv 8.20.0 (npm)
# Expected: JSON Schema 2020-12, Core 10: keywords of one schema are independent of each other but where the specification
#           says otherwise. `contains` and `uniqueItems` do not depend on `prefixItems`, so [] has no item that `contains`
#           asks for, and [1, 1] has equal items, whatever `prefixItems` says of further ones.
# Seen:     Both are valid, unless all errors are asked for. The generated code asks for the verdict of a prefix item
#           before it goes on, and a list that ends before that item has set none. Draft-07's list of `items` is the same.
# Fails when this has changed.
set -eu
recorded='contains: true
contains, all errors: false
uniqueItems: true
uniqueItems, all errors: false'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund ajv@8.20.0
cat > try.mjs <<'END'
import { Ajv2020 } from 'ajv/dist/2020.js';
const cases = [
  ['contains', { prefixItems: [{ type: 'number' }], contains: { type: 'number' } }, []],
  ['uniqueItems', { prefixItems: [true, true, { type: 'number' }], uniqueItems: true }, [1, 1]],
];
for (const [keyword, schema, value] of cases)
  for (const [what, allErrors] of [['', false], [', all errors', true]])
    console.log(`${keyword}${what}: ${new Ajv2020({ strict: false, allErrors }).validate(schema, value)}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
