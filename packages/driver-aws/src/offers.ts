/** The machine types of a label: each instance type in each market that the label uses. */

/** How capacity is paid for. */
export type Market = 'on-demand' | 'spot';
/** `prefer`: spot instances, or on-demand ones if there is no capacity for spot. */
export type SpotUse = 'never' | 'only' | 'prefer';

export interface Choice {
  readonly instanceType: string;
  readonly market: Market;
}

const SPOT = ' (spot)';

/**
 * Returns the machine types in the order of preference; undefined if there is no choice. A label with both markets
 * names the market: `m7i.large (spot)`.
 */
export function machineTypesOf(label: {
  readonly instanceTypes: readonly string[];
  readonly spot: SpotUse;
  readonly isFleet: boolean;
}): readonly string[] | undefined {
  const { instanceTypes, spot, isFleet } = label;
  if (isFleet) return undefined;
  if (spot === 'prefer') return [...instanceTypes.map((type) => `${type}${SPOT}`), ...instanceTypes];
  return instanceTypes.length > 1 ? instanceTypes : undefined;
}

/** Returns the instance type and the market that a machine type stands for. */
export function choiceOf(
  label: { readonly instanceTypes: readonly string[]; readonly spot: SpotUse },
  machineType: string | undefined,
): Choice {
  const [first = ''] = label.instanceTypes;
  if (label.spot !== 'prefer') {
    return { instanceType: machineType ?? first, market: label.spot === 'only' ? 'spot' : 'on-demand' };
  }
  if (machineType === undefined) return { instanceType: first, market: 'spot' };
  return machineType.endsWith(SPOT)
    ? { instanceType: machineType.slice(0, -SPOT.length), market: 'spot' }
    : { instanceType: machineType, market: 'on-demand' };
}
