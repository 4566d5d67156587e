import protobuf, { type Enum, type Field, type Reader, type Type } from 'protobufjs';
import { concatenate, type JsonText } from './json-text.ts';
import { fieldOptions, hasPresence, httpStatuses } from './rest-methods.ts';

/** A longer value that is free JSON stays bytes of the message: to decode and encode a large page would take long. */
const LONG_BYTES = 16_384;

/** A service's response as status, JSON text and headers. */
export interface TranscodedResponse {
  status: number;
  body: JsonText;
  headers: readonly ResponseHeader[];
}
export interface ResponseHeader {
  /** "url": `value` is a path that needs the public URL in front; "link": a cursor, and `name` is the link relation. */
  kind: 'plain' | 'url' | 'link';
  name: string;
  value: string;
}

/**
 * Compiled once per route. Turns the bytes of a message into JSON text in one pass, without an intermediate object.
 * Long values stay parts of `bytes`.
 */
export function compileResponse(type: Type, responseBody: string): (bytes: Uint8Array) => TranscodedResponse {
  const slots = compileSlots(type);
  const inBody = slots.map(({ header, outcome }) => header === undefined && !outcome);
  const bodyIndex = responseBody === '' ? -1 : slots.findIndex(({ name }) => name === responseBody);
  const replacesIndex = type.fieldsArray.findIndex((field) => fieldOptions(field).replacesBody);
  const statusIndex = slots.findIndex(({ outcome }) => outcome);
  const read = slotReader(slots);

  return (bytes) => {
    const reader = protobuf.Reader.create(bytes);
    const texts = read(reader, reader.len);
    const headers = slots.flatMap(({ header }, index) =>
      header && texts[index] ? [{ ...header, value: texts[index] as string }] : [],
    );
    return {
      status: Number(texts[statusIndex] ?? 200),
      headers,
      body:
        bodyIndex >= 0
          ? (texts[replacesIndex] ?? texts[bodyIndex] ?? 'null')
          : join(
              slots,
              texts.map((text, index) => (inBody[index] ? text : undefined)),
            ),
    };
  };
}

/** How one field is read and written. */
interface Slot {
  /** Field number. */
  id: number;
  name: string;
  /** `"name":` */
  prefix: string;
  repeated: boolean;
  /** JSON text of an absent field; undefined if it is left out. */
  absent: string | undefined;
  read(reader: Reader): JsonText;
  /** The field determines the HTTP status. */
  outcome: boolean;
  header?: Omit<ResponseHeader, 'value'>;
}
/** JSON text per slot, undefined if it is left out. */
type Texts = (JsonText | undefined)[];

function compileSlots(type: Type): Slot[] {
  return type.fieldsArray.map((field) => {
    if (field.map) throw new Error(`${field.fullName}: a map cannot be returned through REST`);
    const { header, link, url, outcome, omitAbsent, replacesBody } = fieldOptions(field);
    const slot = {
      id: field.id,
      name: field.name,
      prefix: `${JSON.stringify(field.name)}:`,
      repeated: field.repeated,
      outcome,
    };
    if (header !== '' || link !== '') {
      const out: Omit<ResponseHeader, 'value'> =
        link !== '' ? { kind: 'link', name: link } : { kind: url ? 'url' : 'plain', name: header };
      return { ...slot, absent: undefined, read: (reader) => reader.string(), header: out };
    }
    if (outcome) {
      const statuses = httpStatuses(field.resolvedType as Enum);
      return { ...slot, absent: undefined, read: (reader) => String(statuses.get(reader.int32()) ?? 200) };
    }
    return { ...slot, absent: omitAbsent || replacesBody ? undefined : absentText(field), read: valueReader(field) };
  });
}

/** Does not support packed fields. Only repeated numbers are packed, and valueReader rejects those. */
function slotReader(slots: readonly Slot[]): (reader: Reader, end: number) => Texts {
  const indexOfId: number[] = [];
  slots.forEach(({ id }, index) => {
    indexOfId[id] = index;
  });
  const empty: Texts = slots.map(({ absent }) => absent);
  return (reader, end) => {
    const texts = empty.slice();
    const elements: JsonText[][] = [];
    while (reader.pos < end) {
      const tag = reader.uint32();
      const index = indexOfId[tag >>> 3];
      if (index === undefined) {
        reader.skipType(tag & 7);
        continue;
      }
      const slot = slots[index] as Slot;
      if (slot.repeated) (elements[index] ??= []).push(slot.read(reader));
      else texts[index] = slot.read(reader);
    }
    elements.forEach((list, index) => {
      texts[index] = concatenate(['[', ...list.flatMap((text, i) => (i === 0 ? [text] : [',', text])), ']']);
    });
    return texts;
  };
}

function join(slots: readonly Slot[], texts: Texts): JsonText {
  const parts: JsonText[] = [];
  for (let index = 0; index < slots.length; index++) {
    const text = texts[index];
    if (text !== undefined) parts.push((parts.length === 0 ? '{' : ',') + (slots[index] as Slot).prefix, text);
  }
  return parts.length === 0 ? '{}' : concatenate([...parts, '}']);
}

function absentText(field: Field): string {
  if (field.repeated) return '[]';
  if (hasPresence(field) || fieldOptions(field).json) return 'null';
  if (field.resolvedType) return JSON.stringify((field.resolvedType as Enum).valuesById[0]);
  return field.type === 'string' ? '""' : field.type === 'bool' ? 'false' : '0';
}

function readJson(reader: Reader): JsonText {
  const start = reader.pos;
  const length = reader.uint32();
  reader.pos = start;
  return length > LONG_BYTES ? [reader.bytes()] : reader.string() || 'null';
}

function valueReader(field: Field): (reader: Reader) => JsonText {
  if (fieldOptions(field).json) return readJson;
  const resolved = field.resolvedType;
  if (resolved && 'fields' in resolved) return messageReader(resolved);
  if (field.repeated && field.type !== 'string')
    throw new Error(`${field.fullName}: a list of ${field.type} cannot be returned through REST`);
  if (resolved) {
    const { valuesById } = resolved;
    return (reader) => JSON.stringify(valuesById[reader.int32()]);
  }
  switch (field.type) {
    case 'string':
      return (reader) => JSON.stringify(reader.string());
    case 'bool':
      return (reader) => String(reader.bool());
    case 'double':
      return (reader) => JSON.stringify(reader.double());
    case 'int32':
      return (reader) => String(reader.int32());
    case 'int64':
      return (reader) => String(reader.int64());
    case 'uint32':
      return (reader) => String(reader.uint32());
    case 'uint64':
      return (reader) => String(reader.uint64());
    default:
      throw new Error(`${field.fullName}: a field of type ${field.type} cannot be returned through REST`);
  }
}

function messageReader(type: Type): (reader: Reader) => JsonText {
  const slots = compileSlots(type);
  const read = slotReader(slots);
  return (reader) => {
    const end = reader.uint32() + reader.pos;
    return join(slots, read(reader, end));
  };
}
