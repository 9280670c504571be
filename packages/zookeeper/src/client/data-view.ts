/** Returns a view of the bytes. Its methods read and write numbers with fewer checks than those of a `Buffer`. */
export function viewOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}
