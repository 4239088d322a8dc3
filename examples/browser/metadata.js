// Reads the metadata of an ONNX file, which ONNX Runtime Web does not show.
//
// The file is a protocol buffer: fields with a number, a type and a value. The
// metadata are the fields 14 of the outermost message, pairs of texts.

const METADATA = 14;
const LENGTH_DELIMITED = 2;

/** Returns the metadata of a file, as an object from name to text. */
export function readMetadata(bytes) {
  const found = {};
  for (const { number, value } of fields(bytes)) {
    if (number === METADATA) {
      const [name, text] = Array.from(fields(value), decode);
      found[name] = text ?? "";
    }
  }
  return found;
}

function decode(field) {
  return new TextDecoder().decode(field.value);
}

/** Yields the fields of a message that are texts, bytes or messages. */
function* fields(bytes) {
  let place = 0;
  const readNumber = () => {
    // Seven bits a byte, the lowest first. Lengths have more than 32 bits.
    let number = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[place++];
      number += (byte % 128) * factor;
      if (byte < 128) return number;
    }
  };
  while (place < bytes.length) {
    const tag = readNumber();
    const length = readNumber();
    if (tag % 8 !== LENGTH_DELIMITED) continue; // The number was the value.
    const value = bytes.subarray(place, place + length);
    place += length;
    yield { number: Math.floor(tag / 8), value };
  }
}
