import type { Change } from './source-changes.ts';

/** Stands before JSONata's source; the changes below use these names. */
export const BOUNDS = `
var bounds = { work: function () {}, RegExp: RegExp };
function checkPicture(picture) {
  if (typeof picture === 'string' && picture.length <= 256) return;
  throw { code: 'D3142', message: 'A picture must be a string of at most 256 characters' };
}
function checkWidth(width) {
  if (width > 100) throw { code: 'D3143', message: 'A width in a picture must be at most 100' };
  return width;
}
function checkSignature(signature) {
  if (signature.length <= 200) return;
  throw { code: 'S0403', message: 'The signature of a function must have at most 200 characters', offset: 0 };
}
function searchable(text, pattern) {
  if (typeof pattern !== 'string') return text;
  var size = text.length * (pattern.length + 10);
  if (size > 5e8) throw { code: 'D3144', message: 'The texts are too long to search one in the other' };
  bounds.work(size / 1000);
  return text;
}
function copyOf(node, copies) {
  var text = JSON.stringify(node);
  copies.characters += text.length;
  if (copies.characters <= 2e6) return parseJson(text);
  throw { code: 'S0218', message: 'The operators ?: and ?? are nested too deeply', position: node.position };
}
`;

/** The parser copies the left side of these operators, so its size doubles at each level of nesting. */
const COPIES_ARE_BOUNDED: Change[] = [
  ['var node;\n        var lexer;', 'var node;\n        var lexer;\n        var copies = { characters: 0 };'],
  ['this.condition = JSON.parse(JSON.stringify(left));', 'this.condition = copyOf(left, copies);'],
  ['arguments: [JSON.parse(JSON.stringify(left))]', 'arguments: [copyOf(left, copies)]'],
];

/** A built-in function that is partially applied keeps its signature and its limits. */
const PARTS_ARE_CHECKED: Change[] = [
  [
    `definition: signature,`,
    `definition: signature,
            required: params.filter(function (param) { return !/[?]$/.test(param.regex); }).length,`,
  ],
  [
    `var focus = {
            environment: env,
            createSequence: env.base.createSequence
        };
        var result = proc.apply(focus, args);`,
    `var signature = signatures.get(proc);
        if (signature) {
            while (args.length > signature.required && args[args.length - 1] === undefined) args.pop();
            args = signature.validate(args, undefined);
        }
        var focus = {
            environment: env,
            options: env.base.options,
            createSequence: env.base.createSequence
        };
        var result = proc.apply(focus, args);`,
  ],
];

/** JSONata builds regular expressions from pictures and signatures; those that match long texts must be linear, too. */
const PATTERNS_ARE_LINEAR: Change[] = [
  ["new RegExp(fullRegex, 'i')", "new bounds.RegExp(new RegExp(fullRegex, 'i'))"],
  ['var regex = new RegExp(regexStr);', 'var regex = new bounds.RegExp(new RegExp(regexStr));'],
  ['var isValid = regex.exec(suppliedSig);', 'regex.lastIndex = 0;\n var isValid = regex.exec(suppliedSig);'],
  ['badSig.match(partialPattern)', 'new bounds.RegExp(new RegExp(partialPattern)).exec(badSig)'],
  ['var position = 1;\n        var params = [];', 'checkSignature(signature);\n var position = 1; var params = [];'],
  ['function analyseIntegerPicture(picture) {', 'function analyseIntegerPicture(picture) { checkPicture(picture);'],
  ['function analyseDateTimePicture(picture) {', 'function analyseDateTimePicture(picture) { checkPicture(picture);'],
  ['var defaults = {', 'checkPicture(picture);\n var defaults = {'],
  ['return parseInt(wm);', 'return checkWidth(parseInt(wm));'],
];

/**
 * V8 searches a text in time of the product of both lengths at worst: 2 billion comparisons a second, and 10 more for
 * each character of the text. So one search takes a quarter of a second at most, and a step is worth 50 microseconds.
 */
const SEARCHES_ARE_BOUNDED: Change[] = [
  [
    `var pos = str.indexOf(chars);
        if (pos > -1) {
            return str.substr(0, pos);`,
    `var pos = searchable(str, chars).indexOf(chars);
        if (pos > -1) {
            return str.substr(0, pos);`,
  ],
  [
    `var pos = str.indexOf(chars);
        if (pos > -1) {
            return str.substr(pos + chars.length);`,
    `var pos = searchable(str, chars).indexOf(chars);
        if (pos > -1) {
            return str.substr(pos + chars.length);`,
  ],
  ['result = (str.indexOf(token) !== -1);', 'result = (searchable(str, token).indexOf(token) !== -1);'],
  ['result = str.split(separator, limit);', 'result = searchable(str, separator).split(separator, limit);'],
  [
    `var index = str.indexOf(pattern, position);
                while`,
    `var index = searchable(str, pattern).indexOf(pattern, position);
                while`,
  ],
];

/** These loops never ended for an infinite number, or for one that is the same after one was added. */
const LOOPS_END: Change[] = [
  [
    `for (var item = lhs, index = 0; item <= rhs; item++, index++) {
            result[index] = item;
        }`,
    'for (var index = 0; index < size; index++) result[index] = lhs + index;',
  ],
  ['while (value > 0) {', 'while (value > 0 && isFinite(value)) {'],
  ['while (Math.abs(mantissa) > maxMantissa) {', 'while (Math.abs(mantissa) > maxMantissa && isFinite(mantissa)) {'],
];

/** What was quadratic in the length of an array, without need. */
const ARRAYS_TAKE_LINEAR_TIME: Change[] = [
  [
    `var merge_iter = async function (result, left, right) {
                if (left.length === 0) {
                    Array.prototype.push.apply(result, right);
                } else if (right.length === 0) {
                    Array.prototype.push.apply(result, left);
                } else if (await comp(left[0], right[0])) { // invoke the comparator function
                    // if it returns true - swap left and right
                    result.push(right[0]);
                    await merge_iter(result, left, right.slice(1));
                } else {
                    // otherwise keep the same order
                    result.push(left[0]);
                    await merge_iter(result, left.slice(1), right);
                }
            };
            var merged = [];
            await merge_iter(merged, l, r);
            return merged;`,
    `var merged = [], i = 0, j = 0;
            while (i < l.length && j < r.length) {
                bounds.work(1);
                merged.push(await comp.apply(null, [l[i], r[j]]) ? r[j++] : l[i++]);
            }
            while (i < l.length) merged.push(l[i++]);
            while (j < r.length) merged.push(r[j++]);
            return merged;`,
  ],
  ['var results = isSequence(arr) ?', 'var seen = new Set();\n var results = isSequence(arr) ?'],
  [
    `for(var jj = 0; jj < results.length; jj++) {
                if (deepEquals(`,
    `var isOne = value === value && (typeof value !== 'object' || value === null);
            if (isOne) { includes = seen.has(value); seen.add(value); }
            for(var jj = 0; !isOne && jj < results.length; jj++) {
                if (deepEquals(`,
  ],
  [
    `for(var ii = 0; ii < arg.length; ii++) {
                result = append.call(this, result, spread.call(this, arg[ii]));
            }`,
    `var items;
            for(var ii = 0; ii < arg.length; ii++) {
                var item = spread.call(this, arg[ii]);
                if (item === undefined) continue;
                items = items || this.createSequence();
                if (Array.isArray(item)) item.forEach(function (value) { items.push(value); });
                else items.push(item);
            }
            result = append.call(this, result, items);`,
  ],
];

/**
 * A built-in function that visits many values counts them. A value can be small in memory and have more paths through
 * it than could ever be visited: `$reduce([1..60], function($x) { {"a": $x, "b": $x} })`.
 */
const WORK_IS_COUNTED: Change[] = [
  ['function isDeepEqual(lhs, rhs) {', 'function isDeepEqual(lhs, rhs) { bounds.work(1);'],
  [
    'if(lkeys.length !== rkeys.length) {',
    'bounds.work(lkeys.length + rkeys.length);\n if(lkeys.length !== rkeys.length) {',
  ],
  [
    `return typeof arg === 'object' && arg !== null ? Object.keys(arg) : [];`,
    `var names = typeof arg === 'object' && arg !== null ? Object.keys(arg) : [];
        bounds.work(names.length);
        return names;`,
  ],
  ['function flatten(arg, flattened) {', 'function flatten(arg, flattened) { bounds.work(1);'],
  ['// this is the equivalent of //* in XPath', 'bounds.work(1);'],
  [
    `// lookup the 'name' item in the input
        var result;
        if (Array.isArray(input)) {`,
    `bounds.work(1);
        var result;
        if (Array.isArray(input)) {`,
  ],
  ['// merge the keys of all of the items in the array', 'bounds.work(arg.length);'],
  ['// spread all of the items in the array', 'bounds.work(arg.length);'],
  [
    `var result = false;
        if (Array.isArray(arg)) {
            if (arg.length === 1) {`,
    `var result = false;
        bounds.work(1);
        if (Array.isArray(arg)) {
            if (arg.length === 1) {`,
  ],
  ['JSON.stringify(arg, function (key, val) {', 'JSON.stringify(arg, function (key, val) { bounds.work(1);'],
  ['rhs = [rhs];', 'rhs = [rhs];\n        }\n        if (rhs.length > 1) {\n            bounds.work(rhs.length);'],
  // Copying an element takes a tenth of the time of visiting it.
  ['const size = arg1.length + arg2.length;', 'const size = arg1.length + arg2.length;\n bounds.work(size / 10);'],
  // A function that another built-in function calls for each element is not evaluated, so it takes no step.
  [
    'result = proc.implementation.apply(focus, validatedArgs);',
    'bounds.work(50);\n result = proc.implementation.apply(focus, validatedArgs);',
  ],
];

export const BOUNDED: Change[] = [
  ...COPIES_ARE_BOUNDED,
  ...PARTS_ARE_CHECKED,
  ...PATTERNS_ARE_LINEAR,
  ...SEARCHES_ARE_BOUNDED,
  ...LOOPS_END,
  ...ARRAYS_TAKE_LINEAR_TIME,
  ...WORK_IS_COUNTED,
];
