#!/bin/sh
# Package:  V8 13.6, of Node.js 24.21.0 (npm: node)
# Expected: ECMA-262, 22.2.1.1 (Early Errors): two groups may have one name only if they are in different alternatives. A
#           group and one in it can both take part in a match, so this is a SyntaxError.
# Seen:     Taken, if the outer group has another alternative.
# Fails when this has changed.
set -eu
recorded='(?<n>(?<n>a)) SyntaxError
(?<n>(?<n>a)|) taken
(?<n>(?<n>a)|b) taken'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@24.21.0
cat > try.js <<'END'
for (const source of ['(?<n>(?<n>a))', '(?<n>(?<n>a)|)', '(?<n>(?<n>a)|b)'])
  try {
    new RegExp(source, 'u');
    console.log(source, 'taken');
  } catch ({ name }) {
    console.log(source, name);
  }
END
seen=$(node_modules/.bin/node try.js)
printf "%s\n" "$seen"
[ "$seen" = "$recorded" ] || { echo 'no longer as recorded' >&2; exit 1; }
