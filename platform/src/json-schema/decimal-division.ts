import { spend } from './budget.ts';

/**
 * A number as it is written: `digits` × 10^`exponent`, where the last digit is not 0. A double does not tell how it was
 * written, but its shortest decimal is what was, if that had 15 digits or fewer.
 */
interface Decimal {
  digits: string;
  exponent: number;
}

function decimalOf(number: number): Decimal {
  const [mantissa, exponent] = Math.abs(number).toExponential().split('e') as [string, string];
  return { digits: mantissa.replace('.', ''), exponent: Number(exponent) - Math.max(0, mantissa.length - 2) };
}

/** More factors 2 or 5 than a divisor of 17 digits can have. */
const MOST_FACTORS = 57;
/** With so many digits together, a product is an exact double. */
const EXACT_DIGITS = 15;

/** Tests whether a number is a multiple of the divisor, by the decimals as which both are written. */
export function isMultipleOf(divisor: number): (data: number) => boolean {
  const by = decimalOf(divisor);
  const isInteger = Number.isSafeInteger(divisor);
  return (data) => {
    if (isInteger && Number.isSafeInteger(data)) return data % divisor === 0;
    if (data === 0 || !Number.isFinite(data)) return data === 0;
    spend(3);
    const { digits, exponent } = decimalOf(data);
    const zeros = exponent - by.exponent;
    // The divisor would end in a zero, and the last digit of the number is none.
    if (zeros < 0) return false;
    if (digits.length + zeros <= EXACT_DIGITS && by.digits.length <= EXACT_DIGITS)
      return Number(digits + '0'.repeat(zeros)) % Number(by.digits) === 0;
    spend(5);
    // Further zeros have no factor that the divisor could still need.
    return BigInt(digits + '0'.repeat(Math.min(zeros, MOST_FACTORS))) % BigInt(by.digits) === 0n;
  };
}
