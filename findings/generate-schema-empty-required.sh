#!/bin/sh
# Package:  generate-schema 2.6.0 (npm)
# Expected: draft-04, Validation 5.4.3: `required` has at least one element.
# Seen:     Of objects in a list that have no member in common, the schema, which calls itself one of draft-04, has an
#           empty `required`.
# Fails when this has changed.
set -eu
recorded='http://json-schema.org/draft-04/schema# []'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --no-audit --no-fund generate-schema@2.6.0
cat > try.mjs <<'END'
import generate from 'generate-schema';
const { $schema, properties } = generate.json('Order', { lines: [{ a: 1 }, { b: 2 }] });
console.log(`${$schema} ${JSON.stringify(properties.lines.items.required)}`);
END
seen=$(node try.mjs)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
