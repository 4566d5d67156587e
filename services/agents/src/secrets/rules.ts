import { invalid } from 'platform/core/errors.ts';

/** What names of secrets look like, also where definitions refer to them. */
export const SECRET_NAME = '^[A-Za-z][A-Za-z0-9_.-]{0,63}$';

/** The values of a secret that are valid now, the newest first; none when there is no such secret. */
export type SecretValues = (organizationId: string, name: string) => Promise<string[]>;

const MAX_VALUE_BYTES = 8_192;

/** @throws ServiceError INVALID_REQUEST */
export function checkSecret({ name, value }: { name: string; value: string }): void {
  if (!new RegExp(SECRET_NAME).test(name))
    throw invalid('/name', 'A name of a secret is a letter and up to 63 letters, digits, dots, dashes or underscores');
  if (value === '' || Buffer.byteLength(value) > MAX_VALUE_BYTES)
    throw invalid('/value', `A secret has 1 to ${MAX_VALUE_BYTES} bytes`);
}

/** Why a definition may not name a secret. */
export const noSuchSecret = (name: string): string =>
  `there is no secret ${name}; set it with: npm run admin -- --organization <name> secret set ${name} < <file>`;
