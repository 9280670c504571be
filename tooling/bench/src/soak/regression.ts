/** Linear regression. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

/**
 * Returns the slope of the line with the least squares, and its standard error. Both are NaN for fewer than two
 * different x, the error also for fewer than three points.
 */
export function regression(points: readonly Point[]): { readonly slope: number; readonly error: number } {
  const sum = (of: (point: Point) => number): number => points.reduce((total, point) => total + of(point), 0);
  const [x, y] = [sum((point) => point.x) / points.length, sum((point) => point.y) / points.length];
  const spread = sum((point) => (point.x - x) ** 2);
  const slope = sum((point) => (point.x - x) * (point.y - y)) / spread;
  const residual = sum((point) => (point.y - y - slope * (point.x - x)) ** 2);
  return { slope, error: Math.sqrt(residual / (points.length - 2) / spread) };
}
