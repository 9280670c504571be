/** Validates requests and answers against a vendor's published JSON schemas. */

import Ajv, { type ErrorObject, type ValidateFunction } from 'ajv';

/** Id of the shared document, which schemas reference as `{ $ref: 'api#/$defs/Instance' }`. */
const DOCUMENT = 'api';

export class Validator {
  private readonly ajv = new Ajv({ strict: false, allErrors: false });
  private readonly validators = new Map<string, ValidateFunction>();

  /** `$defs` are the types that schemas reference. */
  constructor($defs: object) {
    this.ajv.addSchema({ $id: DOCUMENT, $defs });
  }

  /**
   * Returns the reason why a value is invalid, e.g. `disks/0/boot must be boolean`, or undefined if it is valid. The
   * schema is compiled once per id.
   */
  problem(id: string, schema: () => object, value: unknown): string | undefined {
    let validate = this.validators.get(id);
    if (validate === undefined) {
      validate = this.ajv.compile(schema());
      this.validators.set(id, validate);
    }
    if (validate(value)) return undefined;
    const [error] = validate.errors ?? [];
    return error === undefined ? 'is invalid' : describe(error);
  }
}

function describe({ instancePath, message = '', params }: ErrorObject): string {
  const details = 'additionalProperty' in params ? `: ${String(params['additionalProperty'])}` : '';
  const allowed = 'allowedValues' in params ? `: ${String(params['allowedValues'])}` : '';
  return `${instancePath.slice(1)} ${message}${details}${allowed}`.trim();
}
