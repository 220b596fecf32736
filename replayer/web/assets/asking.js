// Asks again each second, one question after the other, and not while nobody looks.

const EVERY_MS = 1000;

export const forever = async (look) => {
  if (!document.hidden)
    try {
      await look();
    } catch (error) {
      console.warn(error); // the bar says it when there is no answer
    }
  setTimeout(() => forever(look), EVERY_MS);
};
