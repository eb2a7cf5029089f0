// What the trip designer can do. One tool takes no parameters.
const string = { type: "string" };

function tool(name, description, properties) {
  const parameters = { type: "object", properties, required: Object.keys(properties) };
  return { type: "function", function: { name, description, parameters } };
}

export const TOOLS = [
  tool("get_itinerary", "The days of the trip that is open.", {}),
  tool("get_weather", "The forecast for a city.", { city: string }),
  tool("find_restaurants", "Where to eat.", { city: string, food: string }),
];

const IMPLEMENTATIONS = {
  get_itinerary: () => ({ trip: "LIS-2027", days: ["Alfama", "Sintra", "Belém"] }),
  get_weather: ({ city }) => ({ city, celsius: 21, sky: "sunny" }),
  find_restaurants: ({ city, food }) => ({ city, food, found: ["Horta", "Verde", "Rossio 9"] }),
};

export function runTool(name, args) {
  const run = IMPLEMENTATIONS[name];
  if (!run) throw new Error(`no tool is called ${name}`);
  return run(args);
}
