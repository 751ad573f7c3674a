// Dates follow the variable TZ, as soon as it is set.
const seen = (at) => [at.getTimezoneOffset(), at.getFullYear(), at.getMonth(), at.getDate(), at.getHours(), at.getMinutes(), at.getDay()].join(" ");
const times = [0, Date.UTC(2024, 0, 15, 12), Date.UTC(2024, 6, 15, 12), Date.UTC(2024, 2, 10, 6, 59), Date.UTC(2024, 2, 10, 7), Date.UTC(1900, 0, 1), Date.UTC(2100, 6, 1)];
for (const zone of ["America/New_York", "Asia/Tokyo", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Berlin", "UTC", "Etc/GMT+5"]) {
  process.env.TZ = zone;
  console.log(zone, times.map((t) => seen(new Date(t))).join(" | "));
  console.log(new Date(2024, 6, 1, 12).toISOString(), new Date(2024, 0, 1, 12).toISOString(), new Date("2024-07-01T12:00").getTime());
}
process.env.TZ = "Asia/Tokyo";
Object.assign(process.env, { TZ: "Europe/Paris" });
console.log(new Date(0).getHours());
