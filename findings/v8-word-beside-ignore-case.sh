#!/bin/sh
# Package:  V8 13.6, of Node.js 24.21.0 (npm: node)
# Expected: ECMA-262, 22.2.2.9.3 WordCharacters: \w takes the Kelvin sign and the long s only where case is ignored, with
#           the flag u. The modifier of (?i:b) ends with its group.
# Seen:     \w takes them after such a group, in another alternative or behind it.
# Fails when this has changed.
set -eu
recorded='\w false
(?i:b)|\w true
(?i:b)?\w true
\w|(?i:b) false
(?:b)|\w false'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@24.21.0
cat > try.js <<'END'
for (const source of ['\\w', '(?i:b)|\\w', '(?i:b)?\\w', '\\w|(?i:b)', '(?:b)|\\w'])
  console.log(source, new RegExp(source, 'u').test('\u212a'));
END
seen=$(node_modules/.bin/node try.js)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
