mod changes;
mod fuzz;
mod guilds;
mod messages;
mod order;
mod world;
