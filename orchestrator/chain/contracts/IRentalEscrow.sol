// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @title The rental escrow's promises
/// @notice A renter pays a provider for a machine by the second. The deposit waits here; a provider signs the price, a
/// renter chooses how long, and nobody else decides anything: there is no owner, no pause, no upgrade, no fee switch.
///
/// How money leaves, and the only ways it does:
///   (a) back to the renter of a rental, pushed when the rental closes, or credited if the push fails;
///   (b) to the provider of a rental, credited when the rental closes;
///   (c) to the fee recipient that the provider's signed quote names, at most MAX_FEE_BPS of what the provider earned.
/// A credit is paid to its owner alone, whoever asks for it. Closing a rental never depends on a transfer, so a
/// blacklisted party or a paused token delays a payment but never locks one behind somebody else's.
///
/// How a rental lives (time decides between the two words of a pair; both are computed, never stored):
///   None --create--> Funded | NoShow --activate--> Active | Expired
///   Funded | NoShow --cancel--> Closed        100 % back
///   Active | Expired --reject--> Closed       100 % back, inside the inspection window
///   Active | Expired --end, endSigned, settle--> Closed   pays for the seconds that passed
///
/// Assumptions about the token. If one is broken, so are the promises above.
///   - `transfer` and `transferFrom` move exactly the amount asked for: no fee on transfer (`create` and `extendTo`
///     measure it and revert), no rebasing, no second entry point to the same balances.
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
    /// @param salt Makes two equal quotes different.
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

    /// @notice All that is known of a rental, before and after it closes: whoever has the wallet needs no logs.
    /// @param key The renter's own name for it, see `rentalId`.
    /// @param reason The renter's code for a rejection, else 0.
    /// @param refundCredited The refund could not be pushed and waits as a credit (or waited: credits are one sum).
    /// @param deposit Always ceil(pricePerHour * fundedSeconds / 3600). After closing it equals paid + fee + refunded.
    /// @param paid What the provider was credited with.
    /// @param accessHash The digest of the key that the provider shall let in.
    /// @param readyHash The digest of the endpoint that the provider signed.
    /// @param reportDigest What the renter anchored when closing: its report at `end`, its evidence at `reject`.
    struct Rental {
        bytes32 key;
        address renter;
        State state;
        Outcome outcome;
        uint8 reason;
        bool refundCredited;
        uint16 feeBps;
        uint32 inspectionSeconds;
        address provider;
        uint96 pricePerHour;
        address feeRecipient;
        uint32 fundedSeconds;
        uint32 maxSeconds;
        address closedBy;
        uint64 closedAt;
        uint64 createdAt;
        uint64 startBy;
        uint64 startedAt;
        uint64 endsAt;
        uint128 deposit;
        uint128 paid;
        uint128 fee;
        uint128 refunded;
        bytes32 offerId;
        bytes32 specHash;
        bytes32 accessHash;
        bytes32 readyHash;
        bytes32 reportDigest;
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
    event Credited(address indexed owner, bytes32 indexed id, uint256 amount);
    event Withdrawn(address indexed owner, uint256 amount);
    event QuoteCancelled(address indexed provider, bytes32 indexed quoteDigest);

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
    /// @notice The token arrived in another amount than it was sent.
    error BadDeposit(uint256 expected, uint256 received);
    /// @notice The token said no. The credit stays; try again later.
    error TransferFailed(address account, uint256 amount);
    error NothingToWithdraw(address owner);

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

    /// @notice The provider says that the machine is ready; the clock starts. Until startBy, inclusive.
    function activate(bytes32 id, bytes32 readyHash) external;

    /// @notice The provider takes back a quote that has not been used.
    function cancelQuote(Quote calldata quote) external;

    /// @notice Closes a rental that was never activated: by renter or provider at any time, by anyone after startBy.
    /// Everything goes back to the renter.
    function cancel(bytes32 id) external;

    /// @notice The renter leaves inside the inspection window, its last second included, and gets everything back.
    /// @param reason The renter's code. @param evidence The digest of what the renter saw.
    function reject(bytes32 id, uint8 reason, bytes32 evidence) external;

    /// @notice The renter funds a running rental up to a total. An absolute target, so that a repeated call reverts
    /// instead of paying twice, and the deposit is that of the total, however many steps led to it.
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

    /// @notice True once a quote was used or cancelled.
    function quoteSpent(bytes32 digest) external view returns (bool);

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

    /// @notice The sum of the deposits of all rentals that are not closed.
    function held() external view returns (uint256);

    /// @notice The sum of all credits. The contract's balance is never below held() + credits().
    function credits() external view returns (uint256);

    function token() external view returns (address);

    function DOMAIN_SEPARATOR() external view returns (bytes32);
}
