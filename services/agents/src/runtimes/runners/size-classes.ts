const SIZES_MB = [64, 128, 256, 512];

/**
 * The heap of the runner for an agent with this limit, in MB: the next larger of four sizes, so that agents with
 * different limits share runners.
 */
export const sizeOf = (memoryMb: number): number => SIZES_MB.find((sizeMb) => memoryMb <= sizeMb) ?? memoryMb;
