// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @title The rental escrow's promises
/// @notice A renter pays a provider for a machine by the second. The deposit waits here; a provider signs the price, a
/// renter chooses how long, and nobody else decides anything: there is no owner, no pause, no upgrade, no fee switch.
///
/// How money leaves, and the only ways it does:
///   (a) back to the renter of a rental, pushed when the rental closes, or credited if the push fails; what is left of a
///       budget, to its owner, in the same way;
///   (b) to the provider of a rental, credited when the rental closes;
///   (c) to the fee recipient that the provider's signed quote names, at most MAX_FEE_BPS of what the provider earned.
/// A credit is paid to its owner alone, whoever asks for it. Closing a rental never depends on a transfer, so a
/// blacklisted party or a paused token delays a payment but never locks one behind somebody else's.
///
/// Who pays: the renter itself, by an allowance, or its budget. A budget is money that the renter moves here with one
/// signature, for a second key (the session) to spend on rentals in the renter's name: with the providers of a list, up
/// to a price, until a time. The session can also close what it opened. It can take nothing for itself, and whoever
/// steals it can do no more than that.
///
/// How a rental lives (time decides between the two words of a pair; both are computed, never stored):
///   None --create--> Funded | NoShow --activate--> Active | Expired
///   Funded | NoShow --cancel--> Closed        100 % back
///   Active | Expired --reject--> Closed       100 % back, inside the inspection window
///   Active | Expired --end, endSigned, settle--> Closed   pays for the seconds that passed
///
/// Assumptions about the token. If one is broken, so are the promises above.
///   - `transfer` and `transferFrom` move exactly the amount asked for: no fee on transfer (what comes in is
///     measured, and a payment that leaves the contract short is undone), no rebasing, no second entry point to the same balances.
///   - They call no one back. (Every function that writes is guarded against reentrancy all the same.)
///   - They return true, or revert, or return false; the three are told apart.
///   - A transfer of zero succeeds.
/// Circle's USDC fits, paused and blacklisting included. The ERC-20 view of a chain's own coin does not.
///
/// There is no arbiter in this version. A rental costs cents to dollars and its faults show within minutes, so the
/// renter may walk away for nothing inside the inspection window, and later by the second: judging would cost more
/// than it could move. The provider risks price * inspectionSeconds, chooses that number, and signs it.
interface IRentalEscrow {
    /// @notice What a provider signs (EIP-712). It can be used once, by `renter` alone, until `validUntil` inclusive.
    /// @param offerId The provider's name for the offer.
    /// @param specHash The digest of the hardware specification that is being rented.
    /// @param pricePerHour In the token's base units.
    /// @param feeBps Taken from what the provider earns, in 1/100 of a per cent.
    /// @param minSeconds, maxSeconds Bounds of the funded time, extensions included.
    /// @param startWindow The provider must activate within so many seconds of `create`.
    /// @param inspectionSeconds For so long after activation the renter may leave and pay nothing.
    /// @param salt The provider's number for it: of all quotes with one salt, one can be used. Numbers that differ in their
    /// last byte only are kept in one slot, which makes `create` cheaper by 17,000 gas for all but the first of them.
    struct Quote {
        address provider;
        address renter;
        bytes32 offerId;
        bytes32 specHash;
        uint96 pricePerHour;
        uint16 feeBps;
        address feeRecipient;
        uint32 minSeconds;
        uint32 maxSeconds;
        uint32 startWindow;
        uint32 inspectionSeconds;
        uint64 validUntil;
        bytes32 salt;
    }

    /// @notice What is stored. Time refines it: see Status.
    enum State {
        None,
        Funded,
        Active,
        Closed
    }

    /// @notice What a rental is now. NoShow: funded, and the provider may no longer activate. Expired: active, and the
    /// funded time is over. In both, anyone may close it.
    enum Status {
        None,
        Funded,
        NoShow,
        Active,
        Expired,
        Closed
    }

    /// @notice How a rental was closed. Ended and Expired pay for the time that passed, the others pay nothing.
    /// Abandoned: the provider left inside the inspection window and before the funded time was over.
    enum Outcome {
        None,
        Cancelled,
        NoShow,
        Rejected,
        Abandoned,
        Ended,
        Expired
    }

    /// @notice Who closed a rental. The session of the budget that paid for it counts as the renter.
    enum Party {
        None,
        Renter,
        Provider,
        Anyone
    }

    /// @notice All that is known of a rental, before and after it closes: whoever has the wallet needs no logs. What
    /// was rented stands in the quote, whose digest, offerId and specHash are in RentalFunded.
    /// @param key The renter's own name for it while it is open, see `rentalId`; 0 afterwards.
    /// @param reason The renter's code for a rejection, else 0.
    /// @param budget The number of the renter's budget that pays for it, 0 if the renter does.
    /// @param deposit Always ceil(pricePerHour * fundedSeconds / 3600). After closing it equals paid + fee + refunded.
    /// @param paid What the provider was credited with.
    /// @param refunded What the renter got back, or was credited with if the token refused.
    /// @param accessHash The digest of the key that the provider shall let in.
    /// @param readyHash The digest of the endpoint that the provider signed, while the rental runs; 0 otherwise.
    /// @param reportDigest What the renter anchored when closing: its report at `end`, its evidence at `reject`.
    struct Rental {
        bytes32 key;
        address renter;
        State state;
        Outcome outcome;
        uint8 reason;
        Party closedBy;
        uint16 budget;
        uint16 feeBps;
        uint32 inspectionSeconds;
        address provider;
        uint96 pricePerHour;
        address feeRecipient;
        uint32 fundedSeconds;
        uint32 maxSeconds;
        uint64 closedAt;
        uint64 createdAt;
        uint64 startBy;
        uint64 startedAt;
        uint64 endsAt;
        uint120 deposit;
        uint120 paid;
        uint120 fee;
        uint120 refunded;
        bytes32 accessHash;
        bytes32 readyHash;
        bytes32 reportDigest;
    }

    /// @notice What an owner signs to open a budget: an EIP-3009 `ReceiveWithAuthorization` of the token, from owner to
    /// this contract, of value cap, valid after 0 and before expiry, whose nonce is `budgetDigest` of these terms.
    /// @param session The key that may spend it.
    /// @param cap The money.
    /// @param maxPricePerHour No rental may be dearer.
    /// @param expiry From this second on nothing more is spent, and anyone may send home what is left.
    /// @param providersHash keccak256(abi.encode(address[])) of whom it may be spent with, 0 for whomever.
    /// @param salt Makes two equal budgets different.
    struct BudgetTerms {
        address owner;
        address session;
        uint96 cap;
        uint96 maxPricePerHour;
        uint40 expiry;
        bytes32 providersHash;
        bytes32 salt;
    }

    /// @notice An owner's budget, the last one if it is closed.
    /// @param expiry 0 once it is closed. @param number Counts the owner's budgets.
    struct Budget {
        address session;
        uint96 left;
        uint96 maxPricePerHour;
        uint40 expiry;
        uint16 number;
        bytes32 providersHash;
    }

    event RentalFunded(
        bytes32 indexed id,
        address indexed renter,
        address indexed provider,
        bytes32 key,
        bytes32 quoteDigest,
        bytes32 offerId,
        bytes32 specHash,
        bytes32 accessHash,
        uint256 deposit,
        uint256 fundedSeconds,
        uint256 startBy
    );
    event RentalActivated(bytes32 indexed id, uint256 startedAt, uint256 endsAt, bytes32 readyHash);
    event RentalExtended(bytes32 indexed id, uint256 fundedSeconds, uint256 endsAt, uint256 deposit);
    event RentalClosed(
        bytes32 indexed id,
        address indexed renter,
        address indexed provider,
        Outcome outcome,
        address closedBy,
        uint256 paid,
        uint256 fee,
        uint256 refunded,
        uint8 reason,
        bytes32 reportDigest
    );
    /// @notice What was to go home to its owner waits as a credit. What a rental paid, says RentalClosed.
    event Credited(address indexed owner, bytes32 indexed id, uint256 amount);
    event Withdrawn(address indexed owner, uint256 amount);
    event QuoteCancelled(address indexed provider, bytes32 indexed quoteDigest);
    event BudgetOpened(
        address indexed owner,
        address indexed session,
        uint256 number,
        uint256 cap,
        uint256 maxPricePerHour,
        uint256 expiry
    );
    event BudgetClosed(address indexed owner, uint256 number, uint256 left);

    /// @notice The token has no code.
    error BadToken(address token);
    /// @notice A call into this contract from within a call of this contract.
    error Reentered();
    /// @notice The caller has no part in this that would allow it.
    error NotAllowed(address caller);
    /// @notice The renter has used this key already. A repeated `create` ends here and costs nothing.
    error RentalExists(bytes32 id);
    /// @notice The rental is not in the state that the call needs.
    error WrongState(bytes32 id, State state);
    /// @notice The call was possible until `deadline`.
    error TooLate(uint256 deadline, uint256 time);
    /// @notice The call will be possible from `from` on.
    error TooEarly(uint256 from, uint256 time);
    /// @notice The quote has been used, or cancelled.
    error QuoteSpent(bytes32 quoteDigest);
    /// @notice The signature is malformed or somebody else's.
    error BadSignature(address signer);
    /// @notice The funded time is outside what is possible here.
    error BadSeconds(uint256 seconds_, uint256 least, uint256 most);
    /// @notice The quote's fee is above the cap, or there is nobody to take it.
    error BadFee(uint256 feeBps, address feeRecipient);
    /// @notice It would cost more than the caller allowed.
    error AboveMaximum(uint256 amount, uint256 maximum);
    /// @notice The token moved less than it was asked to: with this payment the contract would owe more than it has. Or
    /// it would owe more than it can count, which is far beyond the supply of any token that this is meant for.
    error BadDeposit(uint256 promised, uint256 balance);
    /// @notice The token said no. The credit stays; try again later.
    error TransferFailed(address account, uint256 amount);
    error NothingToWithdraw(address owner);
    /// @notice An owner has one budget at a time.
    error BudgetIsOpen(address owner);
    error NoBudget(address owner);
    /// @notice The list of providers is not the one that the owner signed.
    error BadProviders();

    /// @notice Pays for a quote and opens the rental. The caller is the renter that the quote names.
    /// @param key Chosen by the renter, once for ever: repeating the call with it reverts with RentalExists, so a
    /// client that lost an answer can send again and never pay twice.
    /// @param seconds_ How long to fund. The deposit is ceil(pricePerHour * seconds_ / 3600).
    /// @param maxDeposit Refuse to pay more.
    /// @return id See `rentalId`.
    function create(
        bytes32 key,
        Quote calldata quote,
        bytes calldata signature,
        uint32 seconds_,
        uint256 maxDeposit,
        bytes32 accessHash
    ) external returns (bytes32 id);

    /// @notice `create` by the session of the renter's budget, paid from that. The budget's limits are checked too.
    /// @param providers The list that the owner signed, see BudgetTerms; empty if there is none.
    function createFromBudget(
        bytes32 key,
        Quote calldata quote,
        bytes calldata signature,
        uint32 seconds_,
        uint256 maxDeposit,
        bytes32 accessHash,
        address[] calldata providers
    ) external returns (bytes32 id);

    /// @notice The provider says that the machine is ready; the clock starts. Until startBy, inclusive.
    function activate(bytes32 id, bytes32 readyHash) external;

    /// @notice The provider takes back a quote that has not been used.
    function cancelQuote(Quote calldata quote) external;

    /// @notice Closes a rental that was never activated: by renter or provider at any time, by anyone after startBy.
    /// Here and below, the session that opened a rental may do what its renter may, until a later budget has another.
    /// Everything goes back to the renter.
    function cancel(bytes32 id) external;

    /// @notice The renter leaves inside the inspection window, its last second included, and gets everything back.
    /// @param reason The renter's code. @param evidence The digest of what the renter saw.
    function reject(bytes32 id, uint8 reason, bytes32 evidence) external;

    /// @notice The renter funds a running rental up to a total. An absolute target, so that a repeated call reverts
    /// instead of paying twice, and the deposit is that of the total, however many steps led to it. The session does the
    /// same from the budget.
    /// @param maxExtra Refuse to add more.
    function extendTo(bytes32 id, uint32 totalSeconds, uint256 maxExtra) external;

    /// @notice Renter or provider closes a running rental. The seconds that passed are paid for, the rest goes back.
    /// A provider that ends inside the inspection window, before the funded time is over, earns nothing: it cannot
    /// outrun a rejection.
    /// @param reportDigest Kept if the caller is the renter, ignored if not.
    function end(bytes32 id, bytes32 reportDigest) external;

    /// @notice `end`, signed by the renter (EIP-712 `End`) and sent by anyone: for a wallet without gas.
    function endSigned(bytes32 id, bytes32 reportDigest, bytes calldata signature) external;

    /// @notice Anyone closes a rental whose funded time is over.
    function settle(bytes32 id) external;

    /// @notice Opens the owner's budget with the owner's signature. Anyone may send it; nobody can alter it.
    function openBudget(BudgetTerms calldata terms, bytes calldata signature) external;

    /// @notice Sends what is left home and ends the session's spending: by owner or session at any time, by anyone from
    /// expiry on. Open rentals go on.
    function closeBudget(address owner) external;

    /// @notice Pays the caller's credit to the caller.
    function withdraw() external returns (uint256 amount);

    /// @notice Pays `owner`'s credit to `owner`. Anyone may send it.
    function withdrawFor(address owner) external returns (uint256 amount);

    /// @notice keccak256(abi.encode(chain id, this contract, renter, key)): known before the rental exists, and nobody
    /// but the renter can take it.
    function rentalId(address renter, bytes32 key) external view returns (bytes32);

    /// @notice What the provider signs for `quote`.
    function quoteDigest(Quote calldata quote) external view returns (bytes32);

    /// @notice What the renter signs for `endSigned`.
    function endDigest(bytes32 id, bytes32 reportDigest) external view returns (bytes32);

    /// @notice The nonce of the authorization that opens a budget of these terms.
    function budgetDigest(BudgetTerms calldata terms) external view returns (bytes32);

    function budgetOf(address owner) external view returns (Budget memory);

    /// @notice True once a quote with this salt was used or cancelled.
    function quoteSpent(address provider, bytes32 salt) external view returns (bool);

    /// @notice A rental; one that does not exist has state None.
    function rental(bytes32 id) external view returns (Rental memory);

    function rentals(bytes32[] calldata ids) external view returns (Rental[] memory);

    /// @notice What the rental is at this block's time.
    function statusOf(bytes32 id) external view returns (Status);

    /// @notice What the provider has earned, fee included: so far, or when it closed.
    function accruedOf(bytes32 id) external view returns (uint256);

    /// @notice The account's rentals that are not closed, in pages. Read all pages at one block: closing one reorders.
    /// @param cursor 0, then the `next` of the page before. @param limit How many at most.
    /// @return ids A page. @return next Where the next page starts, 0 if there is none.
    function openRentals(address account, bool asProvider, uint256 cursor, uint256 limit)
        external
        view
        returns (bytes32[] memory ids, uint256 next);

    /// @notice What `withdraw` would pay.
    function creditOf(address owner) external view returns (uint256);

    /// @notice The deposits of all rentals that are not closed, and what is left in all budgets that are not.
    function held() external view returns (uint256);

    /// @notice The sum of all credits. The contract's balance is never below held() + credits().
    function credits() external view returns (uint256);

    function token() external view returns (address);

    function DOMAIN_SEPARATOR() external view returns (bytes32);
}
