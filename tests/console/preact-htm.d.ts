// What the console uses of functions/orbweaver/console/static/vendor/preact-htm.js.
export function html(strings: TemplateStringsArray, ...values: unknown[]): any;
export function render(what: unknown, into: Element): void;
export function useState<T>(first: T | (() => T)): [T, (next: T | ((was: T) => T)) => void];
export function useEffect(act: () => void | (() => void), about?: readonly unknown[]): void;
export function useLayoutEffect(act: () => void | (() => void), about?: readonly unknown[]): void;
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, about: readonly unknown[]): T;
export function useCallback<T>(act: T, about: readonly unknown[]): T;
