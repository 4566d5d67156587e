/** The first characters of every server token; secret scanners look for them. */
export const TOKEN_PREFIX = 'aks_';
/** How many base62 digits follow the prefix: 43 of the secret, 6 of the checksum. */
export const SECRET_DIGITS = 43;
export const CHECKSUM_DIGITS = 6;

/** A text of the form of a server token, anywhere in a longer text. */
export const TOKEN_FORM = new RegExp(`${TOKEN_PREFIX}[0-9A-Za-z]{${SECRET_DIGITS + CHECKSUM_DIGITS}}`);
