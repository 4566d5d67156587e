import fc from 'fast-check';
import { sentenceAbout } from 'platform/core/sentence.ts';

it.each([
  ['/status', 'must be one of a, b', 'status must be one of a, b'],
  ['/status', 'status must be one of a, b', 'status must be one of a, b'],
  ['/roles/0', 'must be one of admin', 'Element 1 of roles must be one of admin'],
  ['/matrix/1/0', 'must be a number', 'Element 2.1 of matrix must be a number'],
  ['/items/0/price', 'must be a number', 'price must be a number'],
  ['', 'must be a JSON object', 'The body must be a JSON object'],
  ['/0', 'must be a number', 'Element 1 must be a number'],
  ['/a~1b~0c', 'is required', 'a/b~c is required'],
  ['/content', 'takes more steps than are allowed', 'content takes more steps than are allowed'],
  // it cannot be told from a sentence about the member
  ['/must', 'must be a string', 'must be a string'],
  ['/name', 'A server token of this name exists', 'A server token of this name exists'],
])('at %j, %j is %j', (path, message, sentence) => expect(sentenceAbout(path, message)).toBe(sentence));

it('a sentence stays as it is when it passes through another process', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.string(), (names, rest) => {
      const path = names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
      const once = sentenceAbout(path, `must ${rest}`);
      expect(sentenceAbout(path, once)).toBe(once);
    }),
  );
});
