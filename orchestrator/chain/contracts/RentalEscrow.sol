// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {Budgets} from "./Budgets.sol";
import {Purse} from "./Purse.sol";
import {Records} from "./Records.sol";
import {Signatures} from "./Signatures.sol";

/// @title Rental escrow
/// @notice Holds the deposits of rentals and pays them out. The interface says what it promises and what it assumes.
/// @dev What a public function does is written at the interface. Every one that writes has the same order: check,
/// effect, interaction. Amounts are base units of the one token, times are seconds.
contract RentalEscrow is Budgets {
    using Records for Records.Record;

    uint256 public constant MAX_FEE_BPS = 1500;

    bytes32 private constant QUOTE_TYPEHASH = keccak256(
        "Quote(address provider,address renter,bytes32 offerId,bytes32 specHash,uint96 pricePerHour,uint16 feeBps,"
        "address feeRecipient,uint32 minSeconds,uint32 maxSeconds,uint32 startWindow,uint32 inspectionSeconds,"
        "uint64 validUntil,bytes32 salt)"
    );
    bytes32 private constant END_TYPEHASH = keccak256("End(bytes32 id,bytes32 reportDigest)");

    mapping(bytes32 id => Records.Record) private _records;
    mapping(bytes32 id => bytes32) private _accessHashes;
    mapping(bytes32 id => bytes32) private _documents;
    mapping(bytes32 id => address) private _feeRecipients;

    // One bit for each salt. Salts that differ in their last byte only share a word.
    mapping(address provider => mapping(uint248 word => uint256 bits)) private _spentSalts;

    // Which rentals are open. How many are, says the account (see Purse); places beyond that hold what was there
    // before and are written over, which costs a fourth of writing a new one. A rental's record knows its two places.
    mapping(address renter => mapping(uint256 place => bytes32 key)) private _openKeys;
    mapping(address provider => mapping(uint256 place => bytes32 id)) private _openIds;

    /// @dev What the renter chose; the quote has the rest.
    struct Opening {
        bytes32 key;
        uint32 seconds_;
        uint256 maxDeposit;
        bytes32 accessHash;
        uint16 budget;
    }

    constructor(address token_) Purse(token_) {}

    // ---- opening ------------------------------------------------------------------------------------------

    function create(
        bytes32 key,
        Quote calldata quote,
        bytes calldata signature,
        uint32 seconds_,
        uint256 maxDeposit,
        bytes32 accessHash
    ) external nonReentrant returns (bytes32 id) {
        if (msg.sender != quote.renter) revert NotAllowed(msg.sender);
        uint120 deposit;
        (id, deposit) = _open(Opening(key, seconds_, maxDeposit, accessHash, 0), quote, signature);
        _sums.held += deposit;

        _pull(deposit);
    }

    function createFromBudget(
        bytes32 key,
        Quote calldata quote,
        bytes calldata signature,
        uint32 seconds_,
        uint256 maxDeposit,
        bytes32 accessHash,
        address[] calldata providers
    ) external nonReentrant returns (bytes32 id) {
        uint16 budget = _checkBudget(quote.renter, quote.provider, quote.pricePerHour, providers);
        uint120 deposit;
        (id, deposit) = _open(Opening(key, seconds_, maxDeposit, accessHash, budget), quote, signature);
        _draw(quote.renter, deposit);
    }

    function activate(bytes32 id, bytes32 readyHash) external nonReentrant {
        Records.Record storage r = _in(id, State.Funded);
        if (msg.sender != r.provider) revert NotAllowed(msg.sender);
        if (block.timestamp > r.startBy()) revert TooLate(r.startBy(), block.timestamp);

        r.startedAt = uint40(block.timestamp);
        _documents[id] = readyHash;
        emit RentalActivated(id, block.timestamp, r.endsAt(), readyHash);
    }

    function cancelQuote(Quote calldata quote) external nonReentrant {
        if (msg.sender != quote.provider) revert NotAllowed(msg.sender);
        bytes32 digest = quoteDigest(quote);
        if (quoteSpent(quote.provider, quote.salt)) revert QuoteSpent(digest);

        _spend(quote.provider, quote.salt);
        emit QuoteCancelled(msg.sender, digest);
    }

    function extendTo(bytes32 id, uint32 totalSeconds, uint256 maxExtra) external nonReentrant {
        // Checks.
        Records.Record storage r = _in(id, State.Active);
        bool bySession = msg.sender != r.renter;
        if (bySession && !_isSession(msg.sender, r.renter, r.budget)) revert NotAllowed(msg.sender);
        (uint256 startedAt, uint256 endsAt) = (r.startedAt, r.endsAt());
        if (block.timestamp >= endsAt) revert TooLate(endsAt - 1, block.timestamp);
        _checkSeconds(totalSeconds, uint256(r.fundedSeconds) + 1, r.maxSeconds);
        uint120 deposit = Records.priceAhead(r.pricePerHour, totalSeconds);
        uint120 extra = deposit - r.deposit();
        if (extra > maxExtra) revert AboveMaximum(extra, maxExtra);

        // Effects.
        r.fundedSeconds = totalSeconds;
        emit RentalExtended(id, totalSeconds, startedAt + totalSeconds, deposit);
        if (bySession) return _draw(r.renter, extra);
        _sums.held += extra;

        // Interaction.
        _pull(extra);
    }

    // ---- closing ------------------------------------------------------------------------------------------

    function cancel(bytes32 id) external nonReentrant {
        Records.Record storage r = _in(id, State.Funded);
        bool noShow = block.timestamp > r.startBy();
        Party by = _caller(r);
        if (!noShow && by == Party.Anyone) revert NotAllowed(msg.sender);

        _close(id, r, noShow ? Outcome.NoShow : Outcome.Cancelled, by, 0);
    }

    function reject(bytes32 id, uint8 reason, bytes32 evidence) external nonReentrant {
        Records.Record storage r = _in(id, State.Active);
        if (_caller(r) != Party.Renter) revert NotAllowed(msg.sender);
        if (block.timestamp > r.inspectUntil()) revert TooLate(r.inspectUntil(), block.timestamp);

        r.reason = reason;
        _close(id, r, Outcome.Rejected, Party.Renter, evidence);
    }

    function end(bytes32 id, bytes32 reportDigest) external nonReentrant {
        Records.Record storage r = _in(id, State.Active);
        Party by = _caller(r);
        if (by == Party.Anyone) revert NotAllowed(msg.sender);

        bool early = block.timestamp <= r.inspectUntil() && block.timestamp < r.endsAt();
        if (by == Party.Renter) {
            _closeByTime(id, r, by, reportDigest);
        } else if (early) {
            _close(id, r, Outcome.Abandoned, by, 0);
        } else {
            _closeByTime(id, r, by, 0);
        }
    }

    function endSigned(bytes32 id, bytes32 reportDigest, bytes calldata signature) external nonReentrant {
        Records.Record storage r = _in(id, State.Active);
        bytes32 digest = endDigest(id, reportDigest);
        address session = _sessionOf(r.renter);
        bool signed = Signatures.signedBy(r.renter, digest, signature)
            || (_isSession(session, r.renter, r.budget) && Signatures.signedBy(session, digest, signature));
        if (!signed) revert BadSignature(r.renter);

        _closeByTime(id, r, Party.Renter, reportDigest);
    }

    function settle(bytes32 id) external nonReentrant {
        Records.Record storage r = _in(id, State.Active);
        if (block.timestamp < r.endsAt()) revert TooEarly(r.endsAt(), block.timestamp);

        _closeByTime(id, r, _caller(r), 0);
    }

    // ---- views --------------------------------------------------------------------------------------------

    function rentalId(address renter, bytes32 key) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), renter, key));
    }

    function quoteDigest(Quote calldata quote) public view returns (bytes32) {
        return _typed(keccak256(abi.encode(QUOTE_TYPEHASH, quote)));
    }

    function endDigest(bytes32 id, bytes32 reportDigest) public view returns (bytes32) {
        return _typed(keccak256(abi.encode(END_TYPEHASH, id, reportDigest)));
    }

    function quoteSpent(address provider, bytes32 salt) public view returns (bool) {
        return _spentSalts[provider][uint248(uint256(salt) >> 8)] >> uint8(uint256(salt)) & 1 != 0;
    }

    function rental(bytes32 id) public view returns (Rental memory shown) {
        Records.Record storage r = _records[id];
        shown = r.show();
        shown.feeRecipient = _feeRecipients[id];
        shown.accessHash = _accessHashes[id];
        if (shown.state == State.Closed) {
            shown.reportDigest = _documents[id];
        } else if (shown.state != State.None) {
            shown.key = _openKeys[r.renter][r.renterPlace];
            shown.readyHash = _documents[id];
        }
    }

    function rentals(bytes32[] calldata ids) external view returns (Rental[] memory found) {
        found = new Rental[](ids.length);
        for (uint256 i = 0; i < ids.length; ++i) {
            found[i] = rental(ids[i]);
        }
    }

    function statusOf(bytes32 id) external view returns (Status) {
        return _records[id].status();
    }

    function accruedOf(bytes32 id) external view returns (uint256) {
        return _records[id].accrued();
    }

    function openRentals(address account, bool asProvider, uint256 cursor, uint256 limit)
        external
        view
        returns (bytes32[] memory ids, uint256 next)
    {
        uint256 length = asProvider ? _accounts[account].openAsProvider : _accounts[account].openAsRenter;
        uint256 left = cursor < length ? length - cursor : 0;
        ids = new bytes32[](left < limit ? left : limit);
        for (uint256 i = 0; i < ids.length; ++i) {
            ids[i] = asProvider ? _openIds[account][cursor + i] : rentalId(account, _openKeys[account][cursor + i]);
        }
        if (ids.length < left) next = cursor + ids.length;
    }

    // ---- checks -------------------------------------------------------------------------------------------

    function _in(bytes32 id, State wanted) private view returns (Records.Record storage r) {
        r = _records[id];
        if (r.state() != wanted) revert WrongState(id, r.state());
    }

    /// @dev Whom the caller stands for. The key of the budget that paid stands for the renter.
    function _caller(Records.Record storage r) private view returns (Party) {
        if (msg.sender == r.renter) return Party.Renter;
        if (msg.sender == r.provider) return Party.Provider;
        return _isSession(msg.sender, r.renter, r.budget) ? Party.Renter : Party.Anyone;
    }

    function _checkQuote(Quote calldata quote, bytes calldata signature) private view returns (bytes32 digest) {
        if (block.timestamp > quote.validUntil) revert TooLate(quote.validUntil, block.timestamp);
        bool nobody = quote.feeBps != 0 && quote.feeRecipient == address(0);
        if (quote.feeBps > MAX_FEE_BPS || nobody) revert BadFee(quote.feeBps, quote.feeRecipient);
        digest = quoteDigest(quote);
        if (quoteSpent(quote.provider, quote.salt)) revert QuoteSpent(digest);
        if (!Signatures.signedBy(quote.provider, digest, signature)) revert BadSignature(quote.provider);
    }

    function _checkSeconds(uint256 seconds_, uint256 least, uint256 most) private pure {
        if (seconds_ < least || seconds_ > most) revert BadSeconds(seconds_, least, most);
    }

    // ---- storage ------------------------------------------------------------------------------------------

    /// @dev All of `create` but who may and where the money is from: checks, then effects.
    function _open(Opening memory how, Quote calldata quote, bytes calldata signature)
        private
        returns (bytes32 id, uint120 deposit)
    {
        id = rentalId(quote.renter, how.key);
        if (_records[id].state() != State.None) revert RentalExists(id);
        bytes32 digest = _checkQuote(quote, signature);
        _checkSeconds(how.seconds_, quote.minSeconds == 0 ? 1 : quote.minSeconds, quote.maxSeconds);
        deposit = Records.priceAhead(quote.pricePerHour, how.seconds_);
        if (deposit > how.maxDeposit) revert AboveMaximum(deposit, how.maxDeposit);

        _spend(quote.provider, quote.salt);
        _store(id, how, quote);
        emit RentalFunded(
            id,
            quote.renter,
            quote.provider,
            how.key,
            digest,
            quote.offerId,
            quote.specHash,
            how.accessHash,
            deposit,
            how.seconds_,
            block.timestamp + quote.startWindow
        );
    }

    function _spend(address provider, bytes32 salt) private {
        _spentSalts[provider][uint248(uint256(salt) >> 8)] |= 1 << uint8(uint256(salt));
    }

    function _store(bytes32 id, Opening memory how, Quote calldata quote) private {
        _records[id] = Records.Record({
            renter: quote.renter,
            pricePerHour: quote.pricePerHour,
            provider: quote.provider,
            createdAt: uint40(block.timestamp),
            startWindow: quote.startWindow,
            feeBps: quote.feeBps,
            reason: 0,
            startedAt: 0,
            closedAt: 0,
            fundedSeconds: how.seconds_,
            maxSeconds: quote.maxSeconds,
            inspectionSeconds: quote.inspectionSeconds,
            budget: how.budget,
            outcome: Outcome.None,
            closedBy: Party.None,
            renterPlace: _listOfRenter(quote.renter, how.key),
            providerPlace: _listOfProvider(quote.provider, id)
        });
        _accessHashes[id] = how.accessHash;
        if (quote.feeBps != 0) _feeRecipients[id] = quote.feeRecipient;
    }

    function _listOfRenter(address renter, bytes32 key) private returns (uint24 place) {
        place = _accounts[renter].openAsRenter++;
        _accounts[renter].known = true;
        _openKeys[renter][place] = key;
    }

    function _listOfProvider(address provider, bytes32 id) private returns (uint24 place) {
        place = _accounts[provider].openAsProvider++;
        _accounts[provider].known = true;
        _openIds[provider][place] = id;
    }

    /// @dev The last of a list takes the place of the one that leaves.
    function _unlist(Records.Record storage r) private {
        uint24 last = --_accounts[r.renter].openAsRenter;
        if (r.renterPlace != last) {
            bytes32 key = _openKeys[r.renter][last];
            _openKeys[r.renter][r.renterPlace] = key;
            _records[rentalId(r.renter, key)].renterPlace = r.renterPlace;
        }
        last = --_accounts[r.provider].openAsProvider;
        if (r.providerPlace != last) {
            bytes32 id = _openIds[r.provider][last];
            _openIds[r.provider][r.providerPlace] = id;
            _records[id].providerPlace = r.providerPlace;
        }
    }

    function _closeByTime(bytes32 id, Records.Record storage r, Party by, bytes32 report) private {
        _close(id, r, block.timestamp < r.endsAt() ? Outcome.Ended : Outcome.Expired, by, report);
    }

    /// @dev The one exit: writes down how it ended, books every unit of the deposit, then tries to push the refund.
    /// What follows the push only happens when no token moved, and the guard is still up.
    function _close(bytes32 id, Records.Record storage r, Outcome outcome, Party by, bytes32 report) private {
        // Effects.
        r.outcome = outcome;
        r.closedBy = by;
        r.closedAt = uint40(block.timestamp);
        _documents[id] = report;
        (uint120 paid, uint120 fee, uint120 refund) = r.division();
        _sums.held -= paid + fee + refund;
        _unlist(r);
        emit RentalClosed(id, r.renter, r.provider, outcome, msg.sender, paid, fee, refund, r.reason, report);
        _credit(r.provider, paid);
        if (fee != 0) _credit(_feeRecipients[id], fee);

        // Interaction.
        _sendHome(r.renter, id, refund);
    }
}
