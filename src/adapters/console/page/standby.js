// Looks again whether this server is active now. A reload keeps the room in the address.
setTimeout(() => location.reload(), 3000);
