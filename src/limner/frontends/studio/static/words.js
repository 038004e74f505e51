// Values -> the words that people read.

export const usd = (amount) => {
  if (!amount) return "free";
  if (amount < 0.0001) return "<$0.0001";
  return "$" + (amount < 0.1 ? amount.toPrecision(2).replace(/(\.\d\d\d*?)0+$/, "$1") : amount.toFixed(2));
};

// A sum of money, which may be zero; a price of zero is "free".
export const amount = (sum) => (sum ? usd(sum) : "$0");

// A price before it is paid is rounded up: what is said must be enough.
export const atMost = (amount) => {
  if (!amount) return "free";
  const unit = amount < 0.1 ? 10 ** (Math.floor(Math.log10(amount)) - 1) : 0.01;
  return "at most " + usd(Math.ceil(amount / unit - 1e-9) * unit);
};

export const bytes = (count) => {
  for (const [unit, size] of [["MB", 1e6], ["kB", 1e3]])
    if (count >= size) return `${(count / size).toFixed(count >= 10 * size ? 0 : 1)} ${unit}`;
  return `${count} bytes`;
};

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
export const day = (ms) => DAY.format(ms);
export const moment = (ms) => MOMENT.format(ms);

export const count = (number, one, many = one + "s") =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;

// What the server says about an error, and what to do next.
export const errorText = ({ message, hint }) => {
  const said = /[.!?…]$/.test(message) ? message : message + ".";
  return hint ? `${said} ${hint}` : said;
};

export const nameOf = (title) => title || "Untitled picture";
