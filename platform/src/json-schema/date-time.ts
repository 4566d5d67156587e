import { fullFormats } from 'ajv-formats/dist/formats.js';

type Check = (text: string) => boolean;

const isDate = (fullFormats.date as { validate: Check }).validate;
const TIME = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
/** As ISO 8601 has it, too: without an offset, or with one that has no colon or no minutes. */
const ISO_TIME = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?([Zz]|[+-]\d\d(?::?\d\d)?)?$/;
const DATE_LENGTH = 10;
const MINUTES_OF_DAY = 24 * 60;

/** RFC 3339, section 5.6; a leap second is one before midnight in UTC, whatever the offset (section 5.7). */
function timeCheck(form: RegExp): Check {
  return (text) => {
    const [, hour, minute, second, offset = 'Z'] = form.exec(text) ?? [];
    if (hour === undefined || hour > '23' || minute! > '59' || second! > '60') return false;
    const [offsetHour, offsetMinute] = [offset.slice(1, 3) || '00', offset.slice(3).replace(':', '') || '00'];
    if (offsetHour > '23' || offsetMinute > '59') return false;
    if (second !== '60') return true;
    const ahead = (60 * Number(offsetHour) + Number(offsetMinute)) * (offset.startsWith('-') ? -1 : 1);
    const utc = 60 * Number(hour) + Number(minute) - ahead;
    return (utc + MINUTES_OF_DAY) % MINUTES_OF_DAY === MINUTES_OF_DAY - 1;
  };
}

const dateTimeCheck =
  (separators: string, isTime: Check): Check =>
  (text) =>
    separators.includes(text.charAt(DATE_LENGTH) || '?') &&
    isDate(text.slice(0, DATE_LENGTH)) &&
    isTime(text.slice(DATE_LENGTH + 1));

export const isTime: Check = timeCheck(TIME);
export const isDateTime: Check = dateTimeCheck('Tt', isTime);
export const isIsoTime: Check = timeCheck(ISO_TIME);
export const isIsoDateTime: Check = dateTimeCheck('Tt ', isIsoTime);

/** RFC 3339, appendix A, but that a unit in the middle may be left out: Java writes "PT1H2S". */
export const isDuration: Check = (text) =>
  /^P(?=[\dT])(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/.test(text);
