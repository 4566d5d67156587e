/** A schema is not acceptable. `pointer` is the JSON pointer of the place in it. */
export class SchemaRejectedError extends Error {
  override readonly name = 'SchemaRejectedError';
  readonly pointer: string;
  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}
