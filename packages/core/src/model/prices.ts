/** Prices of machine types in a provider's section, and the cost of a node by them. */

import { isJsonObject, type JsonObject } from './json.js';
import type { NodeMachine, Market, NodeData } from './node.js';

/** Prices of one provider. */
export interface Prices {
  readonly currency: string;
  /** Price per hour by machine type and market. */
  readonly types: ReadonlyMap<string, Readonly<Record<Market, number>>>;
}

/** The cost of a node. */
export interface NodeCost {
  readonly currency: string;
  readonly perHour: number;
  /** From the creation of the node until now. */
  readonly total: number;
}

const price: JsonObject = { type: 'number', minimum: 0 };

/** Schema of `prices` in a provider's section. */
export const pricesSchema: JsonObject = {
  type: ['object', 'null'],
  compatible: false,
  properties: {
    currency: { type: 'string', minLength: 1, description: 'Currency of the prices, e.g. `EUR`.' },
    types: {
      type: 'object',
      additionalProperties: {
        oneOf: [
          price,
          {
            type: 'object',
            properties: {
              'on-demand': { ...price, description: 'Price without a spot market.' },
              spot: { ...price, description: 'Usual price of spot instances. Default: `on-demand`.' },
            },
            required: ['on-demand'],
            additionalProperties: false,
          },
        ],
      },
      description: 'Price per hour by machine type of the cloud: a number, or `{on-demand: …, spot: …}`.',
    },
  },
  required: ['currency', 'types'],
  additionalProperties: false,
  description: 'Prices of machine types, for the cost of nodes.',
};

/** Returns the prices in a provider's section; undefined if it has none. */
export function pricesIn(section: JsonObject): Prices | undefined {
  const { prices } = section;
  if (!isJsonObject(prices) || !isJsonObject(prices['types'])) return undefined;
  const types = new Map<string, Readonly<Record<Market, number>>>();
  for (const [type, value] of Object.entries(prices['types'])) {
    const onDemand = isJsonObject(value) ? value['on-demand'] : value;
    const spot = isJsonObject(value) ? (value['spot'] ?? onDemand) : onDemand;
    if (typeof onDemand === 'number' && typeof spot === 'number') types.set(type, { 'on-demand': onDemand, spot });
  }
  const { currency } = prices;
  return { currency: typeof currency === 'string' ? currency : '', types };
}

/** Returns the price of a machine per hour; undefined if it is unknown. */
export function hourlyPrice(machine: NodeMachine | null | undefined, prices: Prices | undefined): number | undefined {
  if (machine === null || machine === undefined) return undefined;
  return prices?.types.get(machine.type)?.[machine.market ?? 'on-demand'];
}

/** Returns the cost of a node at `now` (unix seconds); undefined if its price or its age is unknown. */
export function nodeCost(
  { machine, created_time: created }: Pick<NodeData, 'machine' | 'created_time'>,
  prices: Prices | undefined,
  now: number,
): NodeCost | undefined {
  const perHour = hourlyPrice(machine, prices);
  if (perHour === undefined || prices === undefined || created === null) return undefined;
  return { currency: prices.currency, perHour, total: (perHour * Math.max(0, now - created)) / 3600 };
}
