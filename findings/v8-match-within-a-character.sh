#!/bin/sh
# Package:  V8 13.6, of Node.js 24.21.0 (npm: node)
# Expected: ECMA-262, 22.2.7.2 RegExpBuiltinExec: with the flag u, the search goes on by whole characters
#           (AdvanceStringIndex), so a text of one emoji has two places, 0 and 2.
# Seen:     An empty match at place 1, between the two halves of the character.
# Fails when this has changed.
set -eu
recorded='(?!$|^) 1
(?<!^)(?!$) 1
[^] 0'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@24.21.0
cat > try.js <<'END'
for (const source of ['(?!$|^)', '(?<!^)(?!$)', '[^]'])
  console.log(source, new RegExp(source, 'u').exec('\u{1f600}')?.index);
END
seen=$(node_modules/.bin/node try.js)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
