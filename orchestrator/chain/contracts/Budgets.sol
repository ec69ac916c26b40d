// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {Purse} from "./Purse.sol";

/// @title Budgets: money that a second key may spend on rentals, and on nothing else
/// @dev One for each owner, so that whoever has the wallet finds it with one look. Three slots, used again by the next:
///
///   slot  bytes, from the right
///   0     session 20 | left 12
///   1     maxPricePerHour 12 | expiry 5 | number 2
///   2     providersHash
///
/// expiry 0 is a closed one. The session stays written after that: it may still close what it opened.
abstract contract Budgets is Purse {
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant BUDGET_TYPEHASH = keccak256(
        "Budget(address owner,address session,uint96 cap,uint96 maxPricePerHour,uint40 expiry,bytes32 providersHash,"
        "bytes32 salt)"
    );

    mapping(address owner => Budget) private _budgets;

    function openBudget(BudgetTerms calldata terms, bytes calldata signature) external nonReentrant {
        // Checks.
        Budget storage b = _budgets[terms.owner];
        if (b.expiry != 0) revert BudgetIsOpen(terms.owner);
        if (block.timestamp >= terms.expiry) revert TooLate(terms.expiry, block.timestamp);

        // Effects.
        b.session = terms.session;
        b.left = terms.cap;
        b.maxPricePerHour = terms.maxPricePerHour;
        b.expiry = terms.expiry;
        b.number += 1;
        b.providersHash = terms.providersHash;
        _sums.held += terms.cap;
        emit BudgetOpened(terms.owner, terms.session, b.number, terms.cap, terms.maxPricePerHour, terms.expiry);

        // Interaction.
        _receive(terms.owner, terms.cap, terms.expiry, budgetDigest(terms), signature);
    }

    function closeBudget(address owner) external nonReentrant {
        // Checks.
        Budget storage b = _budgets[owner];
        if (b.expiry == 0) revert NoBudget(owner);
        bool over = block.timestamp >= b.expiry;
        if (!over && msg.sender != owner && msg.sender != b.session) revert NotAllowed(msg.sender);

        // Effects.
        uint96 left = b.left;
        b.left = 0;
        b.expiry = 0;
        _sums.held -= left;
        emit BudgetClosed(owner, b.number, left);

        // Interaction.
        _sendHome(owner, 0, left);
    }

    function budgetOf(address owner) external view returns (Budget memory) {
        return _budgets[owner];
    }

    function budgetDigest(BudgetTerms calldata terms) public view returns (bytes32) {
        return _typed(keccak256(abi.encode(BUDGET_TYPEHASH, terms)));
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        bytes32 name = keccak256("sealtune RentalEscrow");
        return keccak256(abi.encode(DOMAIN_TYPEHASH, name, keccak256("1"), block.chainid, address(this)));
    }

    function _typed(bytes32 structHash) internal view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
    }

    /// @dev Whether the caller's key may open this rental for the owner; the budget's number if so.
    function _checkBudget(address owner, address provider, uint256 pricePerHour, address[] calldata providers)
        internal
        view
        returns (uint16)
    {
        Budget storage b = _budgets[owner];
        if (msg.sender != b.session) revert NotAllowed(msg.sender);
        if (pricePerHour > b.maxPricePerHour) revert AboveMaximum(pricePerHour, b.maxPricePerHour);
        if (b.providersHash != 0 && b.providersHash != keccak256(abi.encode(providers))) revert BadProviders();
        if (b.providersHash != 0 && !_contains(providers, provider)) revert NotAllowed(provider);
        return b.number;
    }

    /// @dev From the budget to a rental's deposit: the sum of what is held stays the same.
    function _draw(address owner, uint120 amount) internal {
        Budget storage b = _budgets[owner];
        if (block.timestamp >= b.expiry) revert TooLate(b.expiry, block.timestamp);
        if (amount > b.left) revert AboveMaximum(amount, b.left);
        b.left -= uint96(amount);
    }

    /// @dev Whether this key may act for the owner on what the budget of this number paid for. Number 0 is none.
    function _isSession(address who, address owner, uint16 number) internal view returns (bool) {
        Budget storage b = _budgets[owner];
        return number != 0 && number == b.number && who == b.session;
    }

    function _sessionOf(address owner) internal view returns (address) {
        return _budgets[owner].session;
    }

    function _contains(address[] calldata list, address wanted) private pure returns (bool) {
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i] == wanted) return true;
        }
        return false;
    }
}
