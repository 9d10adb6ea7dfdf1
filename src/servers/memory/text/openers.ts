const LIST = `
absolutely actually ah aha ahh alas already alright although always amazing amen and anyway anyways apparently as awesome aw aww
basically because before besides best bet beyond big bless bravo brilliant but by bye call can check cheers clearly come
congrats congratulations cool could dang dear definitely despite did do does done dude each eh either enjoy especially
even eventually every everyone everything exactly excellent fair fantastic feel finally fine first follow for fortunately
from funny generally gee glad go god goodbye good goodness gosh got gotcha great guess guys had haha happy hard have he
hello hence here hey hi hmm honestly hooray hope hopefully how however huh hurray i if impressive in indeed instead
interesting is it its just keep kind kinda lately later let lets like literally lol long look looking looks lots love
lovely luckily make man many maybe me meanwhile might mine more moreover most my nah naturally need never nevertheless
next nice nope no not nothing note now obviously oh ok okay omg on once one only oops or originally other otherwise ouch
our out overall perfect perhaps personally phew plus please pretty previously probably quick quite rarely rather really
remember right sad sadly same see seriously she should similarly since sincerely so some someone something sometimes
soon sorry sounds speaking still stay such super sure surely surprisingly sweet take talk tell thank thankfully thanks
that thats the their then there therefore these they this those though thus to today together tomorrow tonight too totally true truly
try two unbelievable under unfortunately unless until up us use usually very wait was watch way we well were what whatever
when where which while who whoa why will wish with without wonderful wow wont would yay yeah yep yes yesterday yet you your youre yup
add all after also any are at ask both avoid build change create delete during ensure fix given import install merge move
new open read refactor remove rename replace revert run set start stop test todo update upgrade warning write
`

const OPENERS: ReadonlySet<string> = new Set(LIST.trim().split(/\s+/))

/** Whether a folded word is often the capitalised first word of a sentence without being a name. */
export const isOpener = (word: string): boolean => OPENERS.has(word)
