import protobuf, { type Enum, type Field, type Reader, type Type } from 'protobufjs';
import { makeJsonWriter } from './json-writer.ts';
import { fieldOptions, hasPresence, httpStatuses } from './rest-methods.ts';

/** A longer value that is free JSON stays bytes of the message: to copy those of a large page would take long. */
const LONG_BYTES = 16_384;

/** A service's response as status, JSON text and headers. */
export interface TranscodedResponse {
  status: number;
  /** In pieces, none of which is empty. */
  body: readonly Uint8Array[];
  headers: readonly ResponseHeader[];
}
export interface ResponseHeader {
  /** "url": `value` is a path that needs the public URL in front; "link": a cursor, and `name` is the link relation. */
  kind: 'plain' | 'url' | 'link';
  name: string;
  value: string;
}

/** Writes the value at which the reader is. */
type WriteValue = (reader: Reader) => void;
/** Where the value of each field is in the message, or each element of a list; undefined if it is absent. */
type Places = (number | number[] | undefined)[];

/** How one field of a message becomes a member of an object. */
interface Slot {
  /** Field number. */
  id: number;
  name: string;
  /** `"name":` */
  prefix: string;
  repeated: boolean;
  /** JSON text of an absent field; undefined if it is left out. */
  absent: string | undefined;
  /** Undefined for what is no part of the body: a header, or the outcome, which determines the status. */
  write: WriteValue | undefined;
  /** The service makes it at each write: who may not read is shown it, too. */
  made: boolean;
  /** Of what is stored: writes the members that the request has sent, and those that are made. */
  writePart: ((reader: Reader, sent: readonly string[]) => void) | undefined;
}

/** Of the process: a body is written in one go. */
const json = makeJsonWriter();

/**
 * Turns the bytes of a message into the bytes of JSON text.
 * @param sent for a caller that may not read what is stored: the members of the body that it has sent
 */
export type ToResponse = (bytes: Uint8Array, sent?: readonly string[]) => TranscodedResponse;

/** Compiled once per route. Makes no intermediate object or string. Long values stay parts of `bytes`. */
export function compileResponse(type: Type, responseBody: string): ToResponse {
  const slots = compileSlots(type);
  const places = placeReader(slots);
  const headers = type.fieldsArray.flatMap((field, index) => headerOf(field, index) ?? []);
  const bodyIndex = responseBody === '' ? -1 : slots.findIndex(({ name }) => name === responseBody);
  const replacesIndex = type.fieldsArray.findIndex((field) => fieldOptions(field).replacesBody);
  const statusIndex = type.fieldsArray.findIndex((field) => fieldOptions(field).outcome);
  const statuses = statusIndex < 0 ? undefined : httpStatuses(type.fieldsArray[statusIndex]!.resolvedType as Enum);

  return (bytes, sent) => {
    const reader = protobuf.Reader.create(bytes);
    const at = places(reader, reader.len);
    let status = 200;
    if (statuses && at[statusIndex] !== undefined) {
      reader.pos = at[statusIndex] as number;
      status = statuses.get(reader.int32()) ?? 200;
    }
    // what an error has left there may be of another organization
    json.begin();
    const index = at[replacesIndex] === undefined ? bodyIndex : replacesIndex;
    if (bodyIndex < 0) writeObject(slots, reader, at);
    else if (isWritten(slots[index] as Slot, at[index])) writeValue(slots[index] as Slot, reader, at[index], sent);
    else json.ascii('null');
    return {
      status,
      headers: headers.flatMap(({ index, kind, name }) => {
        if (at[index] === undefined) return [];
        reader.pos = at[index] as number;
        const value = reader.string();
        return value === '' ? [] : [{ kind, name, value }];
      }),
      body: json.end(),
    };
  };
}

function headerOf(field: Field, index: number): (Omit<ResponseHeader, 'value'> & { index: number }) | undefined {
  const { header, link, url } = fieldOptions(field);
  if (link !== '') return { index, kind: 'link', name: link };
  return header === '' ? undefined : { index, kind: url ? 'url' : 'plain', name: header };
}

const compileSlots = (type: Type): Slot[] =>
  type.fieldsArray.map((field) => {
    if (field.map) throw new Error(`${field.fullName}: a map cannot be returned through REST`);
    const { header, link, outcome, omitAbsent, replacesBody, made, stored } = fieldOptions(field);
    const isInBody = header === '' && link === '' && !outcome;
    return {
      id: field.id,
      name: field.name,
      prefix: `${JSON.stringify(field.name)}:`,
      repeated: field.repeated,
      absent: isInBody && !omitAbsent && !replacesBody ? absentText(field) : undefined,
      write: isInBody ? compileValue(field) : undefined,
      made,
      writePart: stored ? compilePart(field.resolvedType as Type) : undefined,
    };
  });

/** Does not support packed fields. Only repeated numbers are packed, and compileValue rejects those. */
function placeReader(slots: readonly Slot[]): (reader: Reader, end: number) => Places {
  const indexOfId: number[] = [];
  slots.forEach(({ id }, index) => {
    indexOfId[id] = index;
  });
  const none: Places = slots.map(() => undefined);
  return (reader, end) => {
    const places = none.slice();
    while (reader.pos < end) {
      const tag = reader.uint32();
      const index = indexOfId[tag >>> 3];
      if (index !== undefined) {
        if ((slots[index] as Slot).repeated) ((places[index] ??= []) as number[]).push(reader.pos);
        else places[index] = reader.pos;
      }
      reader.skipType(tag & 7);
    }
    return places;
  };
}

const isWritten = ({ absent, write }: Slot, at: Places[number]): boolean =>
  write !== undefined && (at !== undefined || absent !== undefined);

function writeValue(
  { absent, write, writePart }: Slot,
  reader: Reader,
  at: Places[number],
  sent?: readonly string[],
): void {
  if (at === undefined) return json.ascii(absent as string);
  if (typeof at === 'number') {
    reader.pos = at;
    return sent && writePart ? writePart(reader, sent) : write!(reader);
  }
  for (let i = 0; i < at.length; i++) {
    json.ascii(i === 0 ? '[' : ',');
    reader.pos = at[i] as number;
    write!(reader);
  }
  json.ascii(']');
}

function writeObject(slots: readonly Slot[], reader: Reader, places: Places, sent?: readonly string[]): void {
  let separator = '{';
  for (let index = 0; index < slots.length; index++) {
    const slot = slots[index] as Slot;
    if (!isWritten(slot, places[index]) || (sent && !slot.made && !sent.includes(slot.name))) continue;
    json.ascii(separator);
    json.ascii(slot.prefix);
    writeValue(slot, reader, places[index]);
    separator = ',';
  }
  json.ascii(separator === '{' ? '{}' : '}');
}

function absentText(field: Field): string {
  if (field.repeated) return '[]';
  if (hasPresence(field) || fieldOptions(field).json) return 'null';
  return field.type === 'string' ? '""' : field.type === 'bool' ? 'false' : '0';
}

function compileValue(field: Field): WriteValue {
  if (fieldOptions(field).json) return writeFreeJson;
  const resolved = field.resolvedType;
  if (resolved && 'fields' in resolved) return compileMessage(resolved);
  if (field.repeated && field.type !== 'string')
    throw new Error(`${field.fullName}: a list of ${field.type} cannot be returned through REST`);
  switch (field.type) {
    case 'string':
      return (reader) => {
        const end = endOfBytes(reader);
        json.string(reader.buf, reader.pos, end);
      };
    case 'bool':
      return (reader) => json.ascii(String(reader.bool()));
    case 'double':
      return (reader) => json.ascii(JSON.stringify(reader.double()));
    case 'int32':
      return (reader) => json.ascii(String(reader.int32()));
    case 'int64':
      return (reader) => json.ascii(String(reader.int64()));
    case 'uint32':
      return (reader) => json.ascii(String(reader.uint32()));
    case 'uint64':
      return (reader) => json.ascii(String(reader.uint64()));
    default:
      throw new Error(`${field.fullName}: a field of type ${field.type} cannot be returned through REST`);
  }
}

function compileMessage(type: Type): WriteValue {
  const slots = compileSlots(type);
  const places = placeReader(slots);
  return (reader) => writeObject(slots, reader, places(reader, endOfBytes(reader)));
}

function compilePart(type: Type): NonNullable<Slot['writePart']> {
  const slots = compileSlots(type);
  const places = placeReader(slots);
  return (reader, sent) => writeObject(slots, reader, places(reader, endOfBytes(reader)), sent);
}

function writeFreeJson(reader: Reader): void {
  const end = endOfBytes(reader);
  const { buf, pos } = reader;
  if (end === pos) json.ascii('null');
  else if (end - pos > LONG_BYTES) json.piece(buf.subarray(pos, end));
  else json.json(buf, pos, end);
}

/** Moves the reader behind the length of a text or message. @returns where that ends */
function endOfBytes(reader: Reader): number {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new RangeError('A value is longer than its message');
  return end;
}
